"""What every suite works with: the Spark application, a folder that goes away, and how each system is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.data.workloads import StreamFiles, Workload, write_workload
from benchmarks.measure import RunTime, Steps, Timing, describe_timing
from benchmarks.options import BenchOptions
from benchmarks.peers.dovetail_peer import DovetailRun, run_dovetail
from benchmarks.peers.duckdb_peer import DuckDbPeer
from benchmarks.peers.spark_peer import DEFAULT_STATE_STORE, SparkRun, StateStore, run_spark
from benchmarks.verify import Answer, unequal_queries

MAX_QUERIES_READ_EVERY_TIME = 20
"""With more queries, reading the answers back takes longer than the run: only the first repeat is checked."""


@dataclass(frozen=True)
class Case:
    """Queries over files, and what they must answer. Spark may need its own text for the same question."""

    name: str
    files: StreamFiles
    query_sql_by_name: Mapping[str, str]
    expected: Mapping[str, Answer]
    spark_sql_by_name: Mapping[str, str] | None = None

    @property
    def results(self) -> int:
        return sum(answer.row_count for answer in self.expected.values())

    @property
    def rows(self) -> int:
        return self.files.workload.total_rows

    def first(self, query_count: int, name: str) -> Case:
        names = list(self.query_sql_by_name)[:query_count]
        return Case(
            name,
            self.files,
            {query: self.query_sql_by_name[query] for query in names},
            {query: self.expected[query] for query in names},
        )


@dataclass(frozen=True)
class Measured:
    """One system on one case at one batch size."""

    timing: Timing
    seconds_per_batch: int
    is_equal: bool
    create_s: float = 0.0

    @property
    def seconds(self) -> float:
        return self.timing.seconds

    def rows_per_s(self, rows: int) -> int:
        """Of a stopped run: the rows it got through."""
        return round(rows * self.timing.best.done_share / self.seconds)


def fastest(measured: Sequence[Measured]) -> Measured:
    """The batch size at which a system did best; a finished run beats any that was stopped."""
    return min(measured, key=lambda one: (not one.timing.is_finished, -one.rows_per_s(10**9)))


def ratio_to(peer: Measured, ours: Measured) -> float:
    """How many times as long the peer took. Of a stopped peer this is what it took so far: a lower bound."""
    return round(peer.seconds / ours.seconds, 2)


class Workbench:
    def __init__(self, spark: SparkSession, folder: Path, options: BenchOptions, steps: Steps) -> None:
        self.spark = spark
        self.options = options
        self.steps = steps
        self._folder = folder
        self._numbers = count()

    def fresh_folder(self, name: str) -> Path:
        """A path that nothing has used: checkpoints of two runs must never meet."""
        return self._folder / f"{next(self._numbers):04d}-{name}"

    def write(self, workload: Workload) -> StreamFiles:
        with self.steps.step(f"writing {workload.total_rows:,} rows"):
            return write_workload(workload, self.fresh_folder("data"))

    def case(
        self,
        name: str,
        files: StreamFiles,
        query_sql_by_name: Mapping[str, str],
        spark_sql_by_name: Mapping[str, str] | None = None,
    ) -> Case:
        with self.steps.step(f"{name}: the right answers, by DuckDB"), self.duckdb(files) as duckdb:
            expected = duckdb.answers(query_sql_by_name)
        return Case(name, files, query_sql_by_name, expected, spark_sql_by_name)

    def duckdb(self, files: StreamFiles) -> DuckDbPeer:
        return DuckDbPeer(files, self.options.cores)

    def warm_up(self, case: Case, seconds: int, *, with_spark: bool = True) -> None:
        """Code is compiled and workers are started on a part of the data, by small batches, before any clock runs."""
        with self.steps.step(f"{case.name}: warming up"):
            part = case.files.prefix(seconds, self.fresh_folder("warm-up"))
            seconds_per_batch = max(part.workload.seconds_per_file, seconds // 4)
            self.run_dovetail(part, case.query_sql_by_name, seconds_per_batch, read_answers=False)
            if with_spark:
                self.run_spark(part, case.spark_sql_by_name or case.query_sql_by_name, seconds_per_batch)

    def time_dovetail(self, case: Case, seconds_per_batch: int, repeats: int) -> Measured:
        runs: list[DovetailRun] = []
        is_equal = True
        with self.steps.step(f"{case.name}: Dovetail, {seconds_per_batch} s a batch"):
            for i in range(repeats):
                read_answers = i == 0 or len(case.expected) <= MAX_QUERIES_READ_EVERY_TIME
                run = self.run_dovetail(
                    case.files, case.query_sql_by_name, seconds_per_batch, read_answers=read_answers
                )
                if read_answers:
                    is_equal &= self.is_equal("Dovetail", case, run.answer_by_name)
                runs.append(run)
        timing = self.noted(Timing(tuple(run.time for run in runs)))
        return Measured(timing, seconds_per_batch, is_equal, min(run.create_s for run in runs))

    def time_spark(
        self, case: Case, seconds_per_batch: int, repeats: int = 1, state_store: StateStore = DEFAULT_STATE_STORE
    ) -> Measured:
        runs: list[RunTime] = []
        is_equal = True
        with self.steps.step(f"{case.name}: Spark, {state_store.name} state store, {seconds_per_batch} s a batch"):
            for _ in range(repeats):
                sql_by_name = case.spark_sql_by_name or case.query_sql_by_name
                run = self.run_spark(case.files, sql_by_name, seconds_per_batch, state_store)
                if run.time.is_finished:  # a stopped run has a part of the answer
                    with self.duckdb(case.files) as duckdb:
                        observed = {name: duckdb.answer_of_files(path) for name, path in run.output_by_name.items()}
                    is_equal &= self.is_equal("Spark", case, observed)
                runs.append(run.time)
        return Measured(self.noted(Timing(tuple(runs))), seconds_per_batch, is_equal)

    def time_repeats(self, text: str, repeats: int, run: Callable[[], RunTime]) -> Timing:
        with self.steps.step(text):
            timing = Timing(tuple(run() for _ in range(repeats)))
        return self.noted(timing)

    def noted(self, timing: Timing) -> Timing:
        self.steps.note(f"  {describe_timing(timing)}")
        return timing

    def is_equal(self, system: str, case: Case, observed: Mapping[str, Answer]) -> bool:
        """Whether all answers are right; what differs is printed, so that a wrong figure is never quiet."""
        unequal = unequal_queries(case.expected, observed)
        for name in unequal[:5]:
            found, expected = observed.get(name), case.expected.get(name)
            self.steps.note(f"[red]{system} differs on {name}: {found}, expected {expected}[/red]")
        return not unequal

    def run_dovetail(
        self,
        files: StreamFiles,
        sql_by_name: Mapping[str, str],
        seconds_per_batch: int,
        *,
        read_answers: bool,
        **options: Any,
    ) -> DovetailRun:
        self.collect_garbage()
        folder = self.fresh_folder("dovetail")
        return run_dovetail(
            self.spark,
            files,
            sql_by_name,
            folder,
            seconds_per_batch=seconds_per_batch,
            read_answers=read_answers,
            **options,
        )

    def run_spark(
        self,
        files: StreamFiles,
        sql_by_name: Mapping[str, str],
        seconds_per_batch: int,
        state_store: StateStore = DEFAULT_STATE_STORE,
    ) -> SparkRun:
        self.collect_garbage()
        return run_spark(
            self.spark,
            files,
            sql_by_name,
            self.fresh_folder("spark"),
            seconds_per_batch=seconds_per_batch,
            time_limit_s=self.options.peer_time_limit_s,
            state_store=state_store,
        )

    def collect_garbage(self) -> None:
        """The last run's garbage is not the next run's cost."""
        jvm = self.spark.sparkContext._jvm
        if jvm is not None:
            jvm.java.lang.System.gc()
