"""Queries that come and go while a real Session runs: the streamed answers are Spark's own batch answers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dovetail import Session
from dovetail.engine.options import EngineTuning
from tests.support.asserts import assert_same_answers
from tests.support.cases import EngineCase, QueryCase
from tests.support.generators.cases import CaseLimits, nothing_late, random_case
from tests.support.generators.queries import QueryLimits
from tests.support.oracles.answers import answers_of_table
from tests.support.spark_runs import FileStreams, SparkBatchOracle, with_row_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATIENCE_S = 120


def case_with_queries(seed: int, limits: CaseLimits, at_least: int) -> EngineCase:
    """The first case from `seed` on that is rich enough to be worth a Spark session."""
    while True:
        case = random_case(seed, limits)
        has_rows = all(any(batch.get(stream.name) for batch in case.batches) for stream in case.streams)
        if len(case.queries) >= at_least and len(case.batches) >= 4 and len(case.streams) >= 2 and has_rows:
            return case
        seed += 1000


def open_session(spark: SparkSession, case: EngineCase, folder: Path) -> tuple[Session, FileStreams]:
    """No batch counts as small, so that every one goes through the exchanges between stages."""
    streams = FileStreams(spark, case, folder / "streams")
    session = Session(
        spark, str(folder / "checkpoint"), partitions=2, key_groups=16, tuning=EngineTuning(small_batch_rows=0)
    )
    for stream in case.streams:
        session.create_stream(
            stream.name, streams.frame(stream), event_time=stream.event_time, lateness=stream.lateness
        )
    return session, streams


def about(query: QueryCase) -> str:
    return f"{query.name}: {query.sql}"


@pytest.mark.parametrize("seed", [204, pytest.param(205, marks=pytest.mark.slow)])
def test_queries_that_come_and_go_while_it_runs_answer_as_batch_sql(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    limits = CaseLimits(max_queries=14, max_batches=5, queries=QueryLimits(max_relations=3))
    case = with_row_ids(_nothing_late_but_live(case_with_queries(seed, limits, at_least=9)))
    live = LiveRun(*open_session(spark, case, tmp_path), case)
    live.run()
    by_spark = SparkBatchOracle(spark, case)
    for query in case.queries:
        handle = live.handles[query.name]
        assert handle.status.created_batch == live.first_batch_of_phase(query.created_at)
        complete_from = live.phase_of_batch(handle.status.complete_from)
        assert complete_from <= query.created_at
        assert_same_answers(live.answers[query.name], by_spark.expected(query, complete_from), about(query))


def _nothing_late_but_live(case: EngineCase) -> EngineCase:
    """Which batch a file falls into is Spark's choice here, so no row may depend on it to be in time.

    Every file has a row, for that row to tell that its file has arrived.
    """
    calm = nothing_late(case)
    some_rows = {
        stream.name: next((batch[stream.name] for batch in case.batches if batch.get(stream.name)), ())
        for stream in case.streams
    }
    batches = tuple({name: batch.get(name) or rows for name, rows in some_rows.items()} for batch in case.batches)
    return EngineCase(calm.streams, batches, case.queries, case.partitions, case.key_groups)


class LiveRun:
    """A session that keeps running while files arrive in phases; queries change between phases."""

    def __init__(self, session: Session, streams: FileStreams, case: EngineCase) -> None:
        self.session = session
        self.streams = streams
        self.case = case
        self.handles: dict[str, object] = {}
        self.answers: dict[str, object] = {}
        self.last_batch_by_phase: list[int] = []

    def run(self) -> None:
        counters = {
            stream.name: self.session.create_query(
                f"SELECT a.id FROM {stream.name} a JOIN {stream.name} b ON a.id = b.id", name=f"count_{stream.name}"
            )
            for stream in self.case.streams
        }
        arrived = dict.fromkeys(counters, 0)
        for phase, batch in enumerate(self.case.batches):
            self._change_queries(phase)
            if phase == 0:
                self.session.start()
            self.streams.add_batch(phase)
            for name, rows in batch.items():
                arrived[name] += len(rows)
            self._wait(counters, arrived)
            # Of the commit that the answers came with; progress is printed a moment later.
            self.last_batch_by_phase.append(self.session._engine.head.batch)
        for name, handle in self.handles.items():
            self.answers[name] = answers_of_table(handle.results().toArrow())
        self.session.stop()

    def _change_queries(self, phase: int) -> None:
        for query in self.case.queries:
            if query.dropped_at == phase:
                self.handles[query.name].drop()
            if query.created_at == phase:
                self.handles[query.name] = self.session.create_query(query.sql, name=query.name)

    def _wait(self, counters: dict[str, object], arrived: dict[str, int]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while any(counters[name].status.total_rows != count for name, count in arrived.items()):
            assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for rows {arrived}"
            time.sleep(0.05)

    def first_batch_of_phase(self, phase: int) -> int:
        return 0 if phase == 0 else self.last_batch_by_phase[phase - 1] + 1

    def phase_of_batch(self, batch: int) -> int:
        """The phase that begins with `batch`; queries only change between phases."""
        return next(p for p in range(len(self.case.batches)) if self.first_batch_of_phase(p) == batch)
