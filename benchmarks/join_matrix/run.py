"""A question about streams that lie in folders, answered by the join-matrix and compared with DuckDB."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data.folder_case import FolderCase, Right
from benchmarks.join_matrix.engine import MatrixEngine
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.replay import StreamFolder
from benchmarks.workbench import Workbench
from dovetail.kernels.arrow_types import sql_type_of
from dovetail.query.stream import Stream


@dataclass(frozen=True)
class MatrixRun:
    """What cells hold after the last batch. `seconds` are those of all batches in one process, reading included."""

    seconds: float
    state_rows: int
    state_bytes: int
    is_equal: bool


def run_matrix(bench: Workbench, case: FolderCase, right: Right, units: int) -> MatrixRun:
    streams = {stream.name: _declared(stream) for stream in case.streams}
    with bench.steps.step(f"{case.name}: join-matrix, {units} units"):
        engine = MatrixEngine(bench.fresh_folder("matrix"), case.sql, streams, units)
        began = time.perf_counter()
        for tables in _batches(case, bench.options.cores):
            engine.run_batch(tables)
        seconds = time.perf_counter() - began
    with DuckDbViews({}, bench.options.cores) as duckdb:
        is_equal = right.is_given_by(duckdb.answer_of_list(engine.result_files), None)
    if not is_equal:
        bench.steps.note(f"[red]{case.name}: the join-matrix differs from DuckDB[/red]")
    return MatrixRun(seconds, engine.stored_rows, engine.stored_bytes, is_equal)


def _declared(stream: StreamFolder) -> Stream:
    schema = pq.read_schema(next(stream.path.glob("*.parquet")))
    return Stream(stream.name, tuple((column.name, sql_type_of(column.type)) for column in schema))


def _batches(case: FolderCase, threads: int) -> Iterator[dict[str, pa.Table]]:
    """A file of each stream a batch, without the rows that its condition leaves out."""
    files_by_stream = {stream.name: sorted(stream.path.glob("*.parquet")) for stream in case.streams}
    for batch in range(max(map(len, files_by_stream.values()))):
        tables = {}
        for stream in case.streams:
            files = files_by_stream[stream.name]
            whole = pq.read_table(files[min(batch, len(files) - 1)])
            with DuckDbViews({}, threads) as duckdb:
                duckdb.add_table("new_rows", whole if batch < len(files) else whole.slice(0, 0))
                tables[stream.name] = duckdb.rows(f"SELECT * FROM new_rows WHERE {stream.where}").cast(whole.schema)
        yield tables
