"""Declared streams of Parquet files for tests on Spark, and a query over them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from dovetail import Session
from dovetail.query.stream_spec import StreamSpec
from dovetail.query.types import BIGINT, STRING, TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (("k", BIGINT), ("v", BIGINT), ("s", STRING), ("ts", TIMESTAMP))
SECOND = 1_000_000
PAIRS = "SELECT a.v AS l, b.v AS r FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS"


class Folders:
    """Streams of Parquet files; rows are of key 0, so that those near in time join."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = 0

    def spec(self, name: str) -> StreamSpec:
        (self._folder / name).mkdir(parents=True, exist_ok=True)
        return StreamSpec(name, COLUMNS, "parquet", {"path": str(self._folder / name)}, "ts")

    def add(self, name: str, rows: list[tuple[int, int]], file: str | None = None) -> str:
        """A file with rows of a value and a time, perhaps in place of another; its name."""
        times = pa.array([time for _, time in rows], pa.int64()).view(pa.timestamp("us", "UTC"))
        values = pa.array([value for value, _ in rows], pa.int64())
        zeros, texts = pa.array([0] * len(rows), pa.int64()), pa.array(["x"] * len(rows))
        return self.add_table(name, pa.table({"k": zeros, "v": values, "s": texts, "ts": times}), file)

    def add_table(self, name: str, table: pa.Table, file: str | None = None) -> str:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        return self.add_bytes(name, sink.getvalue().to_pybytes(), file)

    def add_bytes(self, name: str, content: bytes, file: str | None = None) -> str:
        self._files += 1
        hidden = self._folder / f".{self._files}"
        hidden.write_bytes(content)
        return hidden.rename(self._folder / name / (file or f"{self._files:04d}.parquet")).name


def open_session(spark: SparkSession, tmp_path: Path) -> Session:
    return Session(spark, tmp_path / "checkpoint", partitions=2, key_groups=8)
