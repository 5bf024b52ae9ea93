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
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dovetail.bench.options import BenchError
from dovetail.bench.workloads import FILE_TIME_START_S

COLUMNS_BY_TABLE: Mapping[str, tuple[str, ...]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey", "n_regionkey"),
    "supplier": ("s_suppkey", "s_nationkey"),
    "customer": ("c_custkey", "c_nationkey"),
    "part": ("p_partkey", "p_size"),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey", "o_custkey"),
    "lineitem": ("l_orderkey", "l_linenumber", "l_partkey", "l_suppkey"),
}
"""What joins use, all of it bigint; no system would read the other columns."""

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
"""Primary keys: what a query returns of a table, few columns that tell every result apart."""


@dataclass(frozen=True)
class TpchFiles:
    """A folder per table with one file per batch."""

    folder: Path
    batch_count: int
    rows_by_table: Mapping[str, int]

    def path(self, table: str) -> Path:
        return self.folder / table

    def batch(self, table: str, number: int) -> pa.Table:
        return pq.read_table(self.path(table) / _file_name(number))

    def prefix(self, batch_count: int, folder: Path) -> TpchFiles:
        """The first batches as files of their own."""
        rows_by_table = {}
        for table in self.rows_by_table:
            (folder / table).mkdir(parents=True)
            for number in range(batch_count):
                os.link(self.path(table) / _file_name(number), folder / table / _file_name(number))
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


def schema_ddl(table: str) -> str:
    return ", ".join(f"{column} bigint" for column in COLUMNS_BY_TABLE[table])


def select_sql(files: TpchFiles) -> dict[str, str]:
    """Views for DuckDB."""
    return {table: f"SELECT * FROM read_parquet('{files.path(table)}/*.parquet')" for table in files.rows_by_table}


def write_tpch(scale: float, batch_count: int, folder: Path) -> TpchFiles:
    """Generate all tables and deal them out by position; a table with fewer rows than batches has empty files."""
    generated = folder / "generated"
    _generate(scale, generated)
    rows_by_table = {}
    for table, columns in COLUMNS_BY_TABLE.items():
        rows = pq.read_table(generated / f"{table}.parquet", columns=list(columns))
        rows = rows.cast(pa.schema([(column, pa.int64()) for column in rows.column_names]))
        rows_by_table[table] = rows.num_rows
        (folder / table).mkdir()
        for number in range(batch_count):
            lower, upper = (rows.num_rows * n // batch_count for n in (number, number + 1))
            path = folder / table / _file_name(number)
            pq.write_table(rows.slice(lower, upper - lower), path)
            os.utime(path, (FILE_TIME_START_S + number, FILE_TIME_START_S + number))
    shutil.rmtree(generated)
    return TpchFiles(folder, batch_count, rows_by_table)


def _generate(scale: float, folder: Path) -> None:
    beside = Path(sys.executable).parent / "tpchgen-cli"
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise BenchError("TPC-H's tables need tpchgen-cli", hint="run: pip install 'dovetail[bench]'")
    folder.mkdir(parents=True)
    command = [program, "parquet", "--scale-factor", str(scale), "--output-dir", str(folder), "--quiet"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own arguments
    if run.returncode:
        raise BenchError("tpchgen-cli failed", where=run.stderr.strip()[:500])


def _file_name(number: int) -> str:
    return f"part-{number:06d}.parquet"
