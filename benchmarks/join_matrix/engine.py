"""The join-matrix as an engine of its own: a query over two streams, batch by batch, in this process.

It has the product's SQL, bucket files and kernels, and none of its planning: every row is written to all cells of its
line, and a cell joins what it holds. Cells work one after the other. Rows are kept for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.join_matrix.shape import JoinMatrix
from benchmarks.join_matrix.side import TIMEZONE, Places, Side
from benchmarks.options import BenchError
from dovetail.frontend.compile_sql import compile_sql
from dovetail.kernels.evaluate.evaluate import evaluate, evaluate_mask
from dovetail.query.expression import TRUE, Call, Column, Expression, all_of
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import JoinQuery
from dovetail.query.stream import Stream
from dovetail.query.types import BOOLEAN
from dovetail.store.bucket_file import Bucket
from dovetail.store.write_bucket import write_bucket


@dataclass
class Cell:
    """The buckets that it holds, by side."""

    number: int
    buckets_by_alias: dict[str, list[Bucket]] = field(default_factory=dict)


class MatrixEngine:
    """See the module's head."""

    def __init__(self, folder: Path, sql: str, streams: Mapping[str, Stream], cell_count: int) -> None:
        self._folder = folder
        self._query = compile_sql(sql, streams, timezone=TIMEZONE)
        _check(self._query)
        needed = self._query.read_columns()
        self._sides = [
            Side.of(self._query, each.alias, tuple(sorted(needed[each.stream]))) for each in self._query.relations
        ]
        self.shape = JoinMatrix.of(tuple(side.alias for side in self._sides), cell_count)
        self._condition = all_of((*_equal_keys(self._query), *self._query.residuals))
        self._cells = [Cell(number, {side.alias: [] for side in self._sides}) for number in range(cell_count)]
        self._batch = 0
        self.result_files: list[Path] = []
        (folder / "results").mkdir(parents=True)

    @property
    def stored_rows(self) -> int:
        return sum(bucket.meta.rows for bucket in self._buckets())

    @property
    def stored_bytes(self) -> int:
        return sum(bucket.meta.size_bytes for bucket in self._buckets())

    def _buckets(self) -> list[Bucket]:
        return [bucket for cell in self._cells for held in cell.buckets_by_alias.values() for bucket in held]

    def run_batch(self, table_by_stream: Mapping[str, pa.Table]) -> None:
        """Rows are sent to their cells; then every cell joins those of either side that are new in it."""
        new_by_alias = {side.alias: self._send(side, table_by_stream[side.stream]) for side in self._sides}
        for cell in self._cells:
            self._join(cell, {alias: new.get(cell.number) for alias, new in new_by_alias.items()})
        self._batch += 1

    def _send(self, side: Side, table: pa.Table) -> dict[int, Bucket]:
        """The bucket that each cell got, each a file of its own. Rows are dealt out in turn to the side's lines; where
        a batch brings few rows, not always to the first ones.
        """
        columns = side.selected(table)
        length = len(next(iter(columns.values())))
        lines = (np.arange(length) + self._batch) % self.shape.line_count(side.alias)
        found = {}
        for line in range(self.shape.line_count(side.alias)):
            rows = pa.array(np.flatnonzero(lines == line))
            if len(rows) == 0:
                continue
            content = side.content({name: column.take(rows) for name, column in columns.items()}, len(rows))
            for cell in self.shape.cells(side.alias, line):
                meta = write_bucket(
                    self._folder,
                    content,
                    store=side.alias,
                    path=f"cell{cell}/{side.alias}-{self._batch}.arrow",
                    lower_batch=self._batch,
                    upper_batch=self._batch,
                    split=cell,
                    level=0,
                    selections=(),
                    keeps_all=True,
                )
                found[cell] = Bucket(self._folder, meta)
        return found

    def _join(self, cell: Cell, new_by_alias: Mapping[str, Bucket | None]) -> None:
        """New rows of the first side meet all of the second, new ones of the second those of the first from before."""
        first, second = self._sides
        before = list(cell.buckets_by_alias[first.alias])
        for side in self._sides:
            newest = new_by_alias[side.alias]
            cell.buckets_by_alias[side.alias] += [] if newest is None else [newest]
        answers = self._answers(first, new_by_alias[first.alias], second, cell.buckets_by_alias[second.alias])
        answers += self._answers(second, new_by_alias[second.alias], first, before)
        if answers:
            path = self._folder / "results" / f"b{self._batch}-c{cell.number}.parquet"
            pq.write_table(pa.concat_tables(answers), path)
            self.result_files.append(path)

    def _answers(self, probing: Side, new: Bucket | None, stored: Side, buckets: list[Bucket]) -> list[pa.Table]:
        if new is None:
            return []
        found = [
            self._answer({probing.alias: new, stored.alias: bucket}, places)
            for bucket in buckets
            for places in stored.matches(lambda c: new.column(c.name), new.meta.rows, bucket)
        ]
        return [table for table in found if table.num_rows]

    def _answer(self, bucket_by_alias: Mapping[str, Bucket], places: Places) -> pa.Table:
        """Of pairs that may belong together, the output of those that do."""
        place_by_alias = dict(zip(bucket_by_alias, map(pa.array, places), strict=True))

        def column(c: Column) -> pa.Array:
            return bucket_by_alias[c.relation].column(c.name).take(place_by_alias[c.relation])

        length = len(places[0])
        holds = np.flatnonzero(evaluate_mask(self._condition, column, length, timezone=TIMEZONE))
        place_by_alias = {alias: each.take(pa.array(holds)) for alias, each in place_by_alias.items()}
        columns = [evaluate(each.expression, column, len(holds), timezone=TIMEZONE) for each in self._query.output]
        return pa.table(columns, [each.name for each in self._query.output])


def _check(query: JoinQuery) -> None:
    is_plain = query.kind is JoinKind.INNER and query.aggregation is None and query.where == TRUE
    is_plain = is_plain and not query.time_bounds and all(each.hop_window is None for each in query.relations)
    if len(query.relations) != 2 or not is_plain:
        raise BenchError("a join-matrix answers pairs of rows of two relations, without groups, windows or time bounds")


def _equal_keys(query: JoinQuery) -> list[Expression]:
    """Equal codes do not always prove equal keys."""
    return [Call("eq", (equality.a_side, equality.b_side), BOOLEAN) for equality in query.equalities]
