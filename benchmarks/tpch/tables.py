"""TPC-H's tables as streams: every batch brings the same share of every table, and what came is kept for ever."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data.workloads import file_name, write_files
from benchmarks.options import BenchError

JOIN_COLUMNS_BY_TABLE: Mapping[str, tuple[str, ...]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey", "n_regionkey"),
    "supplier": ("s_suppkey", "s_nationkey"),
    "customer": ("c_custkey", "c_nationkey"),
    "part": ("p_partkey", "p_size"),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey", "o_custkey"),
    "lineitem": ("l_orderkey", "l_linenumber", "l_partkey", "l_suppkey"),
}
"""What joins use, all of it bigint, so that any two of them can meet."""

KEY_BY_TABLE: Mapping[str, tuple[str, ...]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
"""Primary keys: few columns that tell every result apart."""

Columns = Mapping[str, list[str] | None]
"""By table the columns that are wanted, None for all of them."""

ALL_COLUMNS: Columns = dict.fromkeys(JOIN_COLUMNS_BY_TABLE)


@dataclass(frozen=True)
class TpchFiles:
    """A folder per table with one file per batch."""

    folder: Path
    batch_count: int
    rows_by_table: Mapping[str, int]

    def path(self, table: str) -> Path:
        return self.folder / table

    def batch(self, table: str, number: int) -> pa.Table:
        return pq.read_table(self.path(table) / file_name(number))

    def prefix(self, batch_count: int, folder: Path) -> TpchFiles:
        """The first batches as files of their own."""
        rows_by_table = {}
        for table in self.rows_by_table:
            (folder / table).mkdir(parents=True)
            for number in range(batch_count):
                os.link(self.path(table) / file_name(number), folder / table / file_name(number))
            rows_by_table[table] = sum(self.batch(table, number).num_rows for number in range(batch_count))
        return TpchFiles(folder, batch_count, rows_by_table)


@contextmanager
def growth_is_meant() -> Iterator[None]:
    """Full history is what these suites are about: no warning that state grows."""
    logger = logging.getLogger("dovetail")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def schema_ddl(files: TpchFiles, table: str) -> str:
    return ", ".join(f"{field.name} {_sql_type(field.type)}" for field in files.batch(table, 0).schema)


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    return {pa.int64(): "bigint", pa.int32(): "int", pa.date32(): "date", pa.string(): "string"}[kind]


def select_sql(files: TpchFiles) -> dict[str, str]:
    """Views for DuckDB."""
    return {table: f"SELECT * FROM read_parquet('{files.path(table)}/*.parquet')" for table in files.rows_by_table}


def write_tpch(
    scale: float, batch_count: int, folder: Path, columns_by_table: Columns = ALL_COLUMNS, seed: int | None = None
) -> TpchFiles:
    """Generate tables and deal them out by position; a table with fewer rows than batches has empty files.

    With a seed the rows come in random order. As generated, rows with near keys are near each other.
    """
    generated = folder / "generated"
    _generate(scale, generated, tuple(columns_by_table))
    rows_by_table = {}
    for table, columns in columns_by_table.items():
        rows = pq.read_table(generated / f"{table}.parquet", columns=columns)
        join_columns = JOIN_COLUMNS_BY_TABLE[table]
        rows = rows.cast(pa.schema([(f.name, _stored_type(f, join_columns)) for f in rows.schema]))
        if seed is not None:
            rows = rows.take(np.random.default_rng(seed).permutation(rows.num_rows))
        rows_by_table[table] = rows.num_rows
        edges = [rows.num_rows * number // batch_count for number in range(batch_count + 1)]
        write_files(folder / table, (rows.slice(lower, upper - lower) for lower, upper in pairwise(edges)))
    shutil.rmtree(generated)
    return TpchFiles(folder, batch_count, rows_by_table)


def _stored_type(field: pa.Field, join_columns: tuple[str, ...]) -> pa.DataType:
    if field.name in join_columns:
        return pa.int64()
    return pa.string() if field.type == pa.string_view() else field.type


def _generate(scale: float, folder: Path, tables: tuple[str, ...]) -> None:
    beside = Path(sys.executable).parent / "tpchgen-cli"
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise BenchError("TPC-H's tables need tpchgen-cli", hint="run: pip install 'dovetail[bench]'")
    folder.mkdir(parents=True)
    command = [program, "parquet", "--scale-factor", str(scale), "--output-dir", str(folder), "--quiet"]
    command += ["--tables", ",".join(tables)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own arguments
    if run.returncode:
        raise BenchError("tpchgen-cli failed", where=run.stderr.strip()[:500])
