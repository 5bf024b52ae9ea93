"""Streams that fall silent under a timeout: answers and late rows are those of a model that knows only rows and times.

DOVETAIL_CASES sets how many, DOVETAIL_SEED where they begin, as in `test_streamed_answers`.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dovetail.testing.local_session import LocalSession
from tests.support.asserts import assert_same_answers, change_queries, open_session
from tests.support.cases import EngineCase, KeptRows
from tests.support.generators.cases import random_case
from tests.support.oracles.answers import DuckDbOracle, answers_of_table

CASES = int(os.environ.get("DOVETAIL_CASES", "600")) // 5
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
CHUNKS = 10
TIMEOUT_S = 10


def with_silence(case: EngineCase, rng: Random) -> EngineCase:
    """The case with streams that skip some batches."""
    batches = [{name: rows for name, rows in batch.items() if rng.random() < 0.5} for batch in case.batches]
    return replace(case, batches=tuple(batches))


def keep_rows_in_time(case: EngineCase, begins: list[float]) -> KeptRows:
    """What lateness and silence leave of the case, if its batches begin at these seconds."""
    far: dict[str, int] = {}
    heard = {stream.name: begins[0] for stream in case.streams}
    kept: dict[str, list[Any]] = {stream.name: [] for stream in case.streams}
    late: dict[str, list[int]] = {stream.name: [] for stream in case.streams}
    for batch, begin in zip(case.batches, begins, strict=True):
        before = dict(far)
        for stream in case.streams:
            rows = batch.get(stream.name, ())
            times = stream.times_us(rows)
            limit = before[stream.name] - stream.lateness_us if stream.name in before else None
            in_time = [limit is None or time is None or time >= limit for time in times]
            kept[stream.name].append(tuple(row for row, is_in_time in zip(rows, in_time, strict=True) if is_in_time))
            late[stream.name].append(in_time.count(False))
            known = [time for time in times if time is not None]
            if known:
                far[stream.name] = max([far.get(stream.name, known[0]), *known])
            if rows:
                heard[stream.name] = begin
        silent = {name for name, moment in heard.items() if begin - moment >= TIMEOUT_S}
        kinds = {stream.name: dict(stream.columns).get(stream.event_time or "") for stream in case.streams}
        sending = {name: time for name, time in far.items() if name not in silent}
        for name in silent:
            others = [time for other, time in sending.items() if kinds[other] == kinds[name] is not None]
            if others:
                far[name] = max(min(others), far.get(name, min(others)))
    return KeptRows(
        {name: tuple(batches) for name, batches in kept.items()}, {name: tuple(each) for name, each in late.items()}
    )


def run(case: EngineCase, begins: list[float], root: Path) -> tuple[LocalSession, dict[str, Any], dict[str, list[int]]]:
    opened: list[LocalSession] = []

    def clock() -> float:
        return begins[min(opened[0].engine.head.batch + 1, len(begins) - 1)] if opened else begins[0]

    session = open_session(case, root, clock=clock, idle_timeout=f"{TIMEOUT_S} seconds")
    opened.append(session)
    handles: dict[str, Any] = {}
    late: dict[str, list[int]] = {stream.name: [] for stream in case.streams}
    for batch in range(len(case.batches)):
        change_queries(session, case, batch, handles)
        session.push(case.tables(batch), splits=case.splits)
        for entry in (session.progress or {})["streams"]:
            late[entry["name"]].append(entry["lateRows"])
    return session, handles, late


def case_and_begins(seed: int) -> tuple[EngineCase, list[float]]:
    rng = Random(seed)
    case = random_case(seed)
    while len(case.batches) < 5:
        case = random_case(rng.randrange(1 << 32))
    case = with_silence(case, rng)
    begins = [0.0]
    for _ in case.batches[1:]:
        begins.append(begins[-1] + rng.choice([6.0, 15.0]))
    return case, begins


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_answers_and_late_rows_are_those_of_the_model(tmp_path: Path, chunk: int) -> None:
    for seed in range(FIRST_SEED + chunk, FIRST_SEED + CASES, CHUNKS):
        case, begins = case_and_begins(seed)
        kept = keep_rows_in_time(case, begins)
        session, handles, late = run(case, begins, tmp_path / str(seed))
        assert {name: tuple(counts) for name, counts in late.items()} == kept.late_counts, f"seed {seed}"
        oracle = DuckDbOracle(case, kept)
        for query in case.queries:
            if query.name in handles:
                since = handles[query.name].status.complete_from
                answers = answers_of_table(session.results(query.name))
                assert_same_answers(answers, oracle.expected(query, since), f"seed {seed}: {query.sql}")
        session.close()


def test_silence_makes_rows_late_in_many_cases() -> None:
    """Else the test above would show little."""
    more = 0
    for seed in range(100):
        case, begins = case_and_begins(seed)
        always = keep_rows_in_time(case, [0.0] * len(begins)).late_counts
        more += keep_rows_in_time(case, begins).late_counts != always
    assert more >= 10, more
