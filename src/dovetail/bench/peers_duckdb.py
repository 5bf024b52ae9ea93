"""DuckDB in batch over the same files: the limit of speed, and the judge of every answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from dovetail.bench.measure import RunTime
from dovetail.bench.options import BenchError
from dovetail.bench.verify import Answer, checksum_sql
from dovetail.bench.workloads import ATTRIBUTE_COUNT, StreamFiles

try:
    import duckdb
except ImportError as error:
    raise BenchError("the benchmarks need DuckDB", hint="run: pip install 'dovetail[bench]'") from error


class DuckDbPeer:
    """One in-memory database whose views a, b, ... read the Parquet files of a workload."""

    def __init__(self, files: StreamFiles, threads: int) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {threads}")
        self._connection.execute("SET TimeZone = 'UTC'")
        attributes = ", ".join(f"x{i}" for i in range(ATTRIBUTE_COUNT))
        for stream in files.workload.streams:
            # A plain TIMESTAMP: arithmetic on TIMESTAMPTZ goes through a calendar and would slow the limit down.
            self._connection.execute(
                f"CREATE VIEW {stream} AS SELECT id, make_timestamp(epoch_us(ts)) AS ts, {attributes} "
                f"FROM read_parquet('{files.path(stream)}/*.parquet')"
            )

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

    def answers(self, query_sql_by_name: Mapping[str, str]) -> dict[str, Answer]:
        return {name: self.answer(sql) for name, sql in query_sql_by_name.items()}

    def answer_of_files(self, folder: Path) -> Answer:
        """The answer that another system wrote below `folder`."""
        return self._answer_of(f"read_parquet('{folder}/*.parquet')")

    def _answer_of(self, relation: str) -> Answer:
        described = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        values = [
            f"epoch_us({column})" if "TIMESTAMP" in str(kind) else f"{column}::BIGINT" for column, kind, *_ in described
        ]
        sql = f"SELECT count(*), {checksum_sql(values)} FROM {relation}"
        row = self._connection.execute(sql).fetchall()[0]
        return Answer(int(row[0]), int(row[1]))
