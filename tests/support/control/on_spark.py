"""Programs on a real session that runs while clients ask.

One stream, so that a file is a batch: with two, Spark may see the file of one and not yet that of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.api import Session
from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.control.statement_result import StatementResult
from dovetail.runtime.spark.read_results import read_results
from tests.support.asserts import CaseFailed
from tests.support.cases import EngineCase
from tests.support.oracles.answers import Answers, answers_of_table
from tests.support.spark_runs import FileStreams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 60.0


class SparkHost:
    """For calm programs: processes that are killed have tests of their own."""

    def __init__(self, spark: SparkSession, case: EngineCase, folder: Path) -> None:
        if len(case.streams) != 1:
            raise ValueError("a batch of several files is not one batch of Spark")
        self._spark = spark
        self._case = case
        self._folder = folder
        self._open()

    @property
    def committed_batch(self) -> int:
        return self._session.engine.head.batch

    def execute(self, statement: str, request: str) -> StatementResult:
        return self._session.execute(statement, request=request)

    def push(self, case: EngineCase, batch: int, crash_at: str | None, at_step: Callable[[str], None]) -> None:
        if crash_at is not None:
            raise ValueError("this host does not crash")
        FileStreams(self._spark, case, self._folder / "streams").add_batch(batch)
        if not self._session.engine.answers.await_batch(batch, PATIENCE_S):
            raise CaseFailed(f"waited {PATIENCE_S} s for batch {batch}")
        at_step("after_manifest")

    def redeliver(self) -> None:
        raise ValueError("this host delivers once")

    def restart(self, plan_seed: int | None) -> None:
        if plan_seed is not None:
            raise ValueError("a session plans by itself")
        self.close()
        self._open()

    def records(self) -> tuple[QueryRecord, ...]:
        return self._session.engine.queries.records()

    def answers(self, query_id: str) -> Answers:
        engine = self._session.engine
        query, files = engine.queries.compiled(query_id), engine.answers.results(query_id)
        return answers_of_table(read_results(self._spark, engine.root, query, files).toArrow())

    def close(self) -> None:
        self._session.stop()

    def _open(self) -> None:
        self._session = Session(self._spark, self._folder / "checkpoint", partitions=2, key_groups=8)
        (stream,) = self._case.streams
        frame = FileStreams(self._spark, self._case, self._folder / "streams").frame(stream)
        self._session.create_stream(stream.name, frame, event_time=stream.event_time, lateness=stream.lateness)
        self._session.start()
