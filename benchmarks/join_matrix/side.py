"""One side of a join-matrix: how its rows are kept in a cell, and how new rows of the other side look them up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.evaluate.evaluate import evaluate, evaluate_mask
from dovetail.kernels.gather_rows import rows_of_refs
from dovetail.kernels.match.match_pairs import LegBounds, ProbeRows, StoredRows, match_pairs, one_bucket
from dovetail.kernels.match.match_ranges import Ranges, match_ranges
from dovetail.kernels.match.order_values import End, RowRanges, row_ranges
from dovetail.kernels.match.special_values import ALL_PASS, NO_LOWER, NO_UPPER
from dovetail.optimizer.passes.derive_ranges import derive_ranges
from dovetail.plan.live_query import as_row
from dovetail.plan.probe_tree import RangeEnd, StoredRange
from dovetail.plan.store_plan import ROW, IndexPlan
from dovetail.query.expression import Expression, rename_relations
from dovetail.query.join_query import JoinQuery
from dovetail.runtime.source.build_index import build_index
from dovetail.runtime.source.key_codes import ColumnOf, key_codes
from dovetail.store.bucket_file import Bucket, BucketIndex
from dovetail.store.write_bucket import BucketContent

TIMEZONE = "UTC"
MAX_PAIRS = 4_000_000

I64 = npt.NDArray[np.int64]
Places = tuple[I64, npt.NDArray[np.uint32]]


@dataclass(frozen=True)
class Side:
    """`index` is what its rows are kept by, `probe_keys` what the other side's rows look up in it.

    Where a condition gives a range, rows of equal keys ascend by what it speaks of.
    """

    alias: str
    stream: str
    selection: Expression
    columns: tuple[str, ...]
    index: IndexPlan
    probe_keys: tuple[Expression, ...]
    searched: StoredRange | None

    @staticmethod
    def of(query: JoinQuery, alias: str, columns: tuple[str, ...]) -> Side:
        (other,) = (each.alias for each in query.relations if each.alias != alias)
        relation = query.relation(alias)
        as_seen = {alias: ROW, other: other}
        ranges = derive_ranges(rename_relations(residual, as_seen) for residual in query.residuals).ranges
        searched = ranges[0] if ranges else None
        return Side(
            alias,
            relation.stream,
            relation.selection,
            columns,
            IndexPlan(
                tuple(as_row(equality.side_of(alias), alias) for equality in query.equalities),
                None if searched is None else searched.stored,
            ),
            tuple(equality.side_of(other) for equality in query.equalities),
            searched,
        )

    def selected(self, table: pa.Table) -> dict[str, pa.Array]:
        """The columns that the query needs, of the rows that pass its selection."""
        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        mask = evaluate_mask(self.selection, lambda c: columns[c.name], table.num_rows, timezone=TIMEZONE)
        kept = pa.array(np.flatnonzero(mask))
        return {name: columns[name].take(kept) for name in self.columns}

    def content(self, columns: dict[str, pa.Array], length: int) -> BucketContent:
        """Rows as a bucket file keeps them."""
        index = build_index(self.index, lambda c: columns[c.name], length, TIMEZONE, None)
        return BucketContent(columns, (), {self.index.id: index}, None, length)

    def matches(self, new_columns: ColumnOf, length: int, bucket: Bucket) -> Iterator[Places]:
        """Places of the other side's new rows, and of this side's rows in the bucket that equal keys and the range
        bring together; whoever asks still has to decide the conditions.
        """
        entries = bucket.index(self.index.id)
        if entries is None:
            raise ValueError(f"{bucket.meta.path} has no index {self.index.id}")
        probing = key_codes(IndexPlan(self.probe_keys), new_columns, length, TIMEZONE)
        valid = np.arange(length) if probing.valid_mask is None else np.flatnonzero(probing.valid_mask)
        places = valid[np.argsort(probing.codes[valid], kind="stable")]
        rows = ProbeRows(
            probing.codes[places], np.ones((1, len(places)), np.uint64), np.zeros((0, len(places)), np.int64)
        )
        if self.searched is None and self.index.keys:
            found = match_pairs(rows, one_bucket(_stored(entries)), _NO_BOUNDS, max_pairs=MAX_PAIRS)
        else:
            orders = np.zeros(0, np.int64) if entries.orders is None else entries.orders
            searched = None if self.searched is None else _ranges(self.searched, new_columns, length, places)
            ranges, has_keys = Ranges(searched, orders), bool(self.index.keys)
            found = match_ranges(rows, _stored(entries), _NO_BOUNDS, ranges, has_keys=has_keys, max_pairs=MAX_PAIRS)
        for pairs in found:
            yield places[pairs.probe_idx], rows_of_refs(pairs.stored_refs).astype(np.uint32)


_NO_BOUNDS = LegBounds(np.zeros((1, 0), np.int64), np.zeros((1, 0), np.int64))


def _stored(entries: BucketIndex) -> StoredRows:
    """All of them: rows that no selection wants are not kept."""
    return StoredRows(
        codes=entries.codes,
        rows=entries.rows,
        times=np.zeros(0, np.int64),
        time_range=(int(NO_LOWER), int(NO_UPPER)),
        places=np.array([ALL_PASS], np.int32),
        word_addresses=np.zeros((1, 2), np.uint64),
    )


def _ranges(searched: StoredRange, new_columns: ColumnOf, length: int, places: I64) -> RowRanges:
    def end_of(end: RangeEnd | None) -> End | None:
        if end is None:
            return None
        values = evaluate(end.value, new_columns, length, timezone=TIMEZONE).take(pa.array(places))
        return End(values, end.offset, end.is_inclusive)

    return row_ranges(end_of(searched.lower), end_of(searched.upper), len(places))
