"""A question about streams that lie in folders, and how each system is timed on it.

All systems read the same files and write their answers to files. Every answer of every run is compared with
DuckDB's: by count and checksum, or row by row where a query answers a few groups.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from benchmarks.data.workloads import LATENESS
from benchmarks.measure import RunTime, Timing
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.peers.floor import hand_over
from benchmarks.peers.spark_peer import COMMON_SETTINGS, DEFAULT_STATE_STORE, SparkRun, drain
from benchmarks.replay import Replay, StreamFolder, duckdb_views, replay
from benchmarks.verify import Answer, same_rows
from benchmarks.workbench import Workbench

QUERY = "q"
NO_LIMITS: Mapping[str, Any] = {"max_pairs_per_batch": None, "max_results_per_batch": None}
"""These questions are meant to be large: a session's own limits would stop them."""


@dataclass(frozen=True)
class FolderCase:
    """`rows` come from all streams together. DuckDB and Spark may need a text of their own for the same question.

    `group_keys` are the answer's columns that tell its groups apart: such answers are few rows, compared one by one.
    `crossing` names the columns that the query needs.
    """

    name: str
    streams: tuple[StreamFolder, ...]
    rows: int
    sql: str
    duckdb_sql: str = ""
    spark_sql: str = ""
    group_keys: tuple[str, ...] = ()
    crossing: tuple[str, ...] = ()

    @property
    def answers_groups(self) -> bool:
        return bool(self.group_keys)


@dataclass(frozen=True)
class Right:
    """The right answer, by DuckDB: its rows of a case that answers groups, else enough to know them by."""

    answer: Answer
    rows: pa.Table | None

    def is_given_by(self, answer: Answer | None, rows: pa.Table | None) -> bool:
        if self.rows is None:
            return answer == self.answer
        return rows is not None and same_rows(self.rows, rows)


@dataclass(frozen=True)
class Ours:
    """Our repeats on a case with some options, and what the best of them reported."""

    timing: Timing
    best: Replay
    is_equal: bool

    @property
    def seconds(self) -> float:
        return self.timing.seconds

    @property
    def spread(self) -> list[float]:
        return self.timing.spread


@dataclass(frozen=True)
class Theirs:
    """Spark's repeats on a case; `is_equal` is None when none of them finished."""

    timing: Timing
    is_equal: bool | None
    files_per_batch: int

    @property
    def whole_s(self) -> float:
        """The time for all rows: of a stopped run, what it would have taken at the rate of the batches it finished.

        Without one finished batch it is the time after which it was stopped.
        """
        best = self.timing.best
        if best.is_finished or not best.done_share:
            return best.seconds
        return sum(best.batch_ms) / 1000 / best.done_share


def find_right(bench: Workbench, case: FolderCase) -> Right:
    sql = case.duckdb_sql or case.sql
    with bench.steps.step(f"{case.name}: the right answer, by DuckDB"), _duckdb(bench, case) as duckdb:
        if case.answers_groups:
            rows = duckdb.rows(sql)
            return Right(Answer(rows.num_rows, 0), rows)
        return Right(duckdb.answer(sql), None)


def time_ours(
    bench: Workbench, case: FolderCase, right: Right, options: Mapping[str, Any], repeats: int, label: str = "Dovetail"
) -> Ours:
    """From the call of `start` to the last commit: reading, joining, and answers written."""
    replays: list[Replay] = []
    is_equal = True
    with bench.steps.step(f"{case.name}: {label}"):
        for _ in range(repeats):
            newest = run_ours(bench, case, options)
            if not right.is_given_by(newest.answer_by_name.get(QUERY), newest.rows_by_name.get(QUERY)):
                is_equal = False
                bench.steps.note(f"[red]{case.name}: {label} differs from DuckDB[/red]")
            replays.append(newest)
    timing = bench.noted(Timing(tuple(RunTime(each.drain_s, batch_ms=each.batch_ms) for each in replays)))
    return Ours(timing, min(replays, key=lambda each: each.drain_s), is_equal)


def run_ours(bench: Workbench, case: FolderCase, options: Mapping[str, Any]) -> Replay:
    bench.collect_garbage()
    folder = bench.fresh_folder("dovetail")
    return replay(
        bench.spark, case.streams, {QUERY: case.sql}, folder, {**NO_LIMITS, **options}, read_rows=case.answers_groups
    )


def time_duckdb(bench: Workbench, case: FolderCase, repeats: int) -> Timing:
    sql = case.duckdb_sql or case.sql
    with _duckdb(bench, case) as duckdb:
        return bench.time_repeats(
            f"{case.name}: limit, DuckDB in batch",
            repeats,
            lambda: duckdb.run(sql, bench.fresh_folder("duckdb.parquet")),
        )


def time_floor(bench: Workbench, case: FolderCase, repeats: int) -> Timing:
    """Reading the rows and handing over the columns that the query needs, and nothing else."""
    frames = [stream.read(bench.spark).select(*case.crossing) for stream in case.streams]
    return bench.time_repeats(
        f"{case.name}: floor, the same batches handed to Python",
        repeats,
        lambda: hand_over(bench.spark, frames, case.rows, bench.fresh_folder("floor")),
    )


def time_spark(bench: Workbench, case: FolderCase, right: Right, files_per_batch: int = 1) -> Theirs:
    """Spark's streaming joins, once: its runs are long enough to be steady."""
    with bench.steps.step(f"{case.name}: Spark, {files_per_batch} files of each stream a batch"):
        run = run_spark_streams(bench, case, files_per_batch)
    bench.noted(Timing((run.time,)))
    is_equal = None
    if run.time.is_finished:  # a stopped run has a part of the answer
        is_equal = _is_right(bench, case, right, run.output_by_name[QUERY])
        if not is_equal:
            bench.steps.note(f"[red]{case.name}: Spark differs from DuckDB[/red]")
    return Theirs(Timing((run.time,)), is_equal, files_per_batch)


def run_spark_streams(bench: Workbench, case: FolderCase, files_per_batch: int = 1) -> SparkRun:
    bench.collect_garbage()
    frame = _spark_frame(bench, case, files_per_batch)
    return drain(
        {QUERY: frame},
        bench.fresh_folder("spark"),
        time_limit_s=bench.options.peer_time_limit_s,
        input_rows=case.rows,
        is_updating=case.answers_groups,
    )


def spark_refusal(bench: Workbench, case: FolderCase) -> str | None:
    """Why Spark does not run the case as a stream, in its own words; None when it does."""
    try:
        run_spark_streams(bench, case)
    except PySparkException as error:
        return refusal_text(error)
    return None


def refusal_text(error: PySparkException) -> str:
    first_line = str(error).split("\n")[0]
    return first_line.rsplit("exception: ", 1)[-1].split(" SQLSTATE")[0].strip(" ;")


def spark_batch(bench: Workbench, case: FolderCase, right: Right) -> tuple[float, bool]:
    """The case on Spark in batch: seconds, and whether its groups are right."""
    session = bench.spark.newSession()
    for stream in case.streams:
        frame = session.read.schema(stream.schema_ddl).parquet(str(stream.path)).where(stream.where)
        frame.createOrReplaceTempView(stream.name)
    frame = session.sql(case.spark_sql or case.sql)
    output = bench.fresh_folder("spark-batch")
    timing = bench.time_repeats(f"{case.name}: Spark in batch", 1, lambda: _written(frame, output))
    return timing.seconds, right.is_given_by(None, pq.read_table(output))


def _written(frame: DataFrame, output: Path) -> RunTime:
    started = time.perf_counter()
    frame.write.parquet(str(output))
    return RunTime(time.perf_counter() - started)


def _spark_frame(bench: Workbench, case: FolderCase, files_per_batch: int) -> DataFrame:
    session = bench.spark.newSession()  # settings and views of a run must not reach the next one
    for key, value in (*COMMON_SETTINGS.items(), *DEFAULT_STATE_STORE.settings):
        session.conf.set(key, value)
    for stream in case.streams:
        frame = stream.read(session, files_per_batch)
        if stream.event_time:
            frame = frame.withWatermark(stream.event_time, LATENESS)
        frame.createOrReplaceTempView(stream.name)
    return session.sql(case.spark_sql or case.sql)


def _is_right(bench: Workbench, case: FolderCase, right: Right, folder: Path) -> bool:
    with _duckdb(bench, case) as duckdb:
        if case.answers_groups:
            return right.is_given_by(None, duckdb.rows(_newest_groups_sql(case, folder)))
        return right.is_given_by(duckdb.answer_of_files(folder), None)


def _newest_groups_sql(case: FolderCase, folder: Path) -> str:
    """Of the changes that Spark wrote, the last one of every group."""
    keys = ", ".join(case.group_keys)
    return (
        f"SELECT * EXCLUDE (batch) FROM read_parquet('{folder}/*/*.parquet', hive_partitioning = true) "
        f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY batch DESC) = 1"
    )


def _duckdb(bench: Workbench, case: FolderCase) -> DuckDbViews:
    return DuckDbViews(duckdb_views(case.streams), bench.options.cores)


def stopped_figures(theirs: Theirs) -> dict[str, object]:
    """What a report says of a run that was stopped."""
    if theirs.timing.is_finished:
        return {}
    best = theirs.timing.best
    return {"spark_stopped_after_s": round(best.seconds, 1), "spark_done_share": round(best.done_share, 3)}
