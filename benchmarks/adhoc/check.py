"""The right answer of a query for its lifetime, by DuckDB.

A query answers with every result whose newest row came in one of its batches, from the one in which it was created to
the one before it was dropped, and all of whose rows came in `complete_from` or later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from benchmarks.adhoc.queries import TemplateQuery
from benchmarks.adhoc.session import Asked, Batch, batch_by_file
from benchmarks.data.workloads import ATTRIBUTE_COUNT, StreamFiles
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.verify import Answer
from dovetail.store.manifest import ResultPart, read_manifests
from dovetail.store.result_parts import read_result

NO_ROWS = Answer(0, 0)


class LifetimeOracle(DuckDbViews):
    """Rows of every stream with the batch they came in; rows that came in none are not there."""

    def __init__(self, files: StreamFiles, batch_by_file: Mapping[str, list[int]], threads: int) -> None:
        super().__init__({}, threads)
        attributes = ", ".join(f"x{i}" for i in range(ATTRIBUTE_COUNT))
        rows_per_file = files.workload.rows_per_second * files.workload.seconds_per_file
        self._last_batch = max((batches[-1] for batches in batch_by_file.values() if batches), default=-1)
        for stream, batches in batch_by_file.items():
            arrived = pa.table({"file": range(len(batches)), "batch": batches})
            self.add_table(f"arrived_{stream}", arrived)
            self.run_statement(
                f"CREATE TABLE all_{stream} AS SELECT id, make_timestamp(epoch_us(ts)) AS ts, {attributes}, batch "
                f"FROM read_parquet('{files.path(stream)}/*.parquet') "
                f"JOIN arrived_{stream} ON file = id // {rows_per_file}"
            )

    def expected(self, asked: Asked) -> Answer:
        status = asked.query.status
        if status.created_batch is None or status.complete_from is None:
            return NO_ROWS
        ended = self._last_batch + 1 if status.dropped_batch is None else status.dropped_batch
        return self.answer(lifetime_sql(asked.template, status.complete_from, status.created_batch, ended))


def lifetime_sql(query: TemplateQuery, complete_from: int, created: int, ended: int) -> str:
    """Batches from `complete_from` on bring rows, those from `created` up to (without) `ended` answers."""
    streams = ", ".join(
        f"{stream} AS (SELECT * FROM all_{stream} WHERE batch >= {complete_from} AND batch < {ended})"
        for stream in query.streams
    )
    newest = f"greatest({', '.join(f'{stream}.batch' for stream in query.streams)}) AS newest"
    return f"SELECT * EXCLUDE newest FROM (WITH {streams} {query.selecting(newest)}) WHERE newest >= {created}"


def wrong_queries(
    files: StreamFiles, batches: Mapping[int, Batch], asked: Iterable[Asked], checkpoint: Path, threads: int
) -> dict[str, str]:
    """By name, what differs; also a query that failed."""
    parts_by_query: dict[str, list[ResultPart]] = {}
    for manifest in read_manifests(checkpoint):
        for part in manifest.results:
            parts_by_query.setdefault(part.query, []).append(part)
    wrong = {}
    with LifetimeOracle(files, batch_by_file(batches, files), threads) as oracle:
        for each in asked:
            found = [read_result(checkpoint, part) for part in parts_by_query.get(each.query.id, ())]
            observed = oracle.answer_of_table(pa.concat_tables(found)) if found else NO_ROWS
            expected = oracle.expected(each)
            error = each.query.status.error
            if error is not None or observed != expected:
                wrong[each.query.name] = error or f"{observed}, expected {expected}"
    return wrong
