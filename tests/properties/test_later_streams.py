"""Streams that are declared while batches run, with restarts in between: the answers are those of batch SQL.

DOVETAIL_CASES sets how many, DOVETAIL_SEED where they begin, as in `test_streamed_answers`.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dovetail.query.stream_spec import StreamSpec
from dovetail.testing.local_session import LocalSession
from tests.support.asserts import CaseRun, QueryRun, change_queries, check_run, open_session
from tests.support.cases import EngineCase, QueryCase, StreamCase
from tests.support.generators.cases import random_case
from tests.support.generators.chain_cases import random_chain_case
from tests.support.oracles.answers import answers_of_table

CASES = int(os.environ.get("DOVETAIL_CASES", "600")) // 10
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
CHUNKS = 10


def spec_of(stream: StreamCase) -> StreamSpec:
    options = {"path": f"/data/{stream.name}"}
    return StreamSpec(stream.name, stream.stream.columns, "parquet", options, stream.event_time, stream.lateness)


def with_later_streams(case: EngineCase, rng: Random) -> tuple[EngineCase, dict[str, int]]:
    """The case without what a stream brought before the batch with which it comes; its queries come no earlier."""
    first_batches = {s.name: rng.choice([0, rng.randrange(len(case.batches))]) for s in case.streams}
    # Without a stream there is no batch.
    first_batches[rng.choice(case.streams).name] = 0
    batches = tuple(
        {name: rows for name, rows in rows_by_stream.items() if first_batches[name] <= batch}
        for batch, rows_by_stream in enumerate(case.batches)
    )
    queries = [_not_before_its_streams(query, first_batches) for query in case.queries]
    alive = tuple(query for query in queries if query.dropped_at is None or query.created_at < query.dropped_at)
    return replace(case, batches=batches, queries=alive), first_batches


def _not_before_its_streams(query: QueryCase, first_batches: dict[str, int]) -> QueryCase:
    used = [first for name, first in first_batches.items() if re.search(rf"\b{name}\b", query.sql)]
    return replace(query, created_at=max(query.created_at, *used))


def run_with_later_streams(case: EngineCase, first_batches: dict[str, int], root: Path, rng: Random) -> CaseRun:
    def opened() -> LocalSession:
        return open_session(replace(case, streams=()), root)

    session = opened()
    handles: dict[str, Any] = {}
    for batch in range(len(case.batches)):
        for stream in case.streams:
            if first_batches[stream.name] == batch:
                session.engine.streams.declare(spec_of(stream))
        change_queries(session, case, batch, handles)
        if rng.random() < 0.2:
            session.close()
            session = opened()
        session.push(case.tables(batch), splits=case.splits)
    runs = {}
    for name, handle in handles.items():
        status = session.engine.queries.record(handle.id)
        runs[name] = QueryRun(answers_of_table(session.results(name)), status.complete_from or 0, status.error)
    session.close()
    return CaseRun(runs, {})


@pytest.mark.parametrize("make", [random_case, random_chain_case])
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_answers_are_those_of_batch_sql(tmp_path: Path, chunk: int, make: Any) -> None:
    for seed in range(FIRST_SEED + chunk, FIRST_SEED + CASES, CHUNKS):
        rng = Random(seed)
        case, first_batches = with_later_streams(make(seed), rng)
        try:
            check_run(case, run_with_later_streams(case, first_batches, tmp_path / str(seed), rng))
        except Exception as error:
            raise AssertionError(f"seed {seed}, streams from {first_batches}: {error}") from error


def test_many_queries_reach_back_before_their_newest_stream(tmp_path: Path) -> None:
    """Else the test above would show little."""
    reaching = 0
    for seed in range(60):
        rng = Random(seed)
        case, first_batches = with_later_streams(random_case(seed), rng)
        run = run_with_later_streams(case, first_batches, tmp_path / str(seed), rng)
        for query in case.queries:
            newest = _not_before_its_streams(replace(query, created_at=0), first_batches).created_at
            found = run.runs.get(query.name)
            reaching += found is not None and found.complete_from < newest and bool(found.answers)
    assert reaching >= 5, reaching
