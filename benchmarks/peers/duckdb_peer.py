"""DuckDB in batch over the same files: the limit of speed, and the judge of every answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import pyarrow as pa

from benchmarks.data.workloads import ATTRIBUTE_COUNT, StreamFiles
from benchmarks.measure import RunTime
from benchmarks.options import BenchError
from benchmarks.verify import Answer, checksum_sql, number_sql

try:
    import duckdb
except ImportError as error:
    raise BenchError("the benchmarks need DuckDB", hint="run: pip install 'dovetail[bench]'") from error


class DuckDbViews:
    """One in-memory database whose views are what the streams bring, each as the SELECT that reads its files."""

    def __init__(self, select_by_view: Mapping[str, str], threads: int) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {threads}")
        self._connection.execute("SET TimeZone = 'UTC'")
        for view, select in select_by_view.items():
            self._connection.execute(f"CREATE VIEW {view} AS {select}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def run(self, sql: str, output: Path) -> RunTime:
        """The query with its answer written to Parquet, as the streaming systems do."""
        started = time.perf_counter()
        self._connection.execute(f"COPY ({sql}) TO '{output}' (FORMAT parquet)")
        return RunTime(time.perf_counter() - started)

    def answer(self, sql: str) -> Answer:
        return self._answer_of(f"({sql})")

    def rows(self, sql: str) -> pa.Table:
        """The answer itself: of a query that answers few rows."""
        return self._connection.sql(sql).to_arrow_table()

    def answers(self, query_sql_by_name: Mapping[str, str]) -> dict[str, Answer]:
        return {name: self.answer(sql) for name, sql in query_sql_by_name.items()}

    def answer_of_files(self, folder: Path) -> Answer:
        """The answer that another system wrote below `folder`."""
        return self._answer_of(f"read_parquet('{folder}/*.parquet')")

    def answer_of_list(self, files: Sequence[Path]) -> Answer:
        paths = ", ".join(f"'{path}'" for path in files)
        return self._answer_of(f"read_parquet([{paths}])")

    def answer_of_table(self, table: pa.Table) -> Answer:
        self.add_table("answered", table)
        return self._answer_of("answered")

    def add_table(self, name: str, table: pa.Table) -> None:
        """A table of this process's memory under a name."""
        self._connection.register(name, table)

    def run_statement(self, sql: str) -> None:
        self._connection.execute(sql)

    def number(self, sql: str) -> int:
        """The one number that a query returns."""
        return int(self._connection.execute(sql).fetchall()[0][0])

    def _answer_of(self, relation: str) -> Answer:
        described = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        values = number_sql({str(column): str(kind) for column, kind, *_ in described}, is_spark=False)
        sql = f"SELECT count(*), {checksum_sql(values)} FROM {relation}"
        row = self._connection.execute(sql).fetchall()[0]
        return Answer(int(row[0]), int(row[1]))


class DuckDbPeer(DuckDbViews):
    """Views a, b, ... over the Parquet files of a workload."""

    def __init__(self, files: StreamFiles, threads: int) -> None:
        attributes = ", ".join(f"x{i}" for i in range(ATTRIBUTE_COUNT))
        # A plain TIMESTAMP: arithmetic on TIMESTAMPTZ goes through a calendar and would slow the limit down.
        select_by_view = {
            stream: f"SELECT id, make_timestamp(epoch_us(ts)) AS ts, {attributes} "
            f"FROM read_parquet('{files.path(stream)}/*.parquet')"
            for stream in files.workload.streams
        }
        super().__init__(select_by_view, threads)
