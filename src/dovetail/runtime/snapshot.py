"""The stores as one task sees them: buckets of earlier batches and of this one, in one order on every task.

A reference names a bucket by its ordinal in that order, so tasks can send each other references. Workers keep
buckets mapped between batches; that is a cache checked against the snapshot, never the truth.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.evaluate import evaluate_mask
from dovetail.kernels.gather_rows import gather_numpy, gather_rows, make_refs, ordinals_of
from dovetail.kernels.select_rows import Mask, unpack_mask
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.query.expression import TRUE, Expression, columns_of
from dovetail.runtime.build_index import build_index
from dovetail.store.bucket_file import Bucket, BucketIndex, BucketMeta

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

_open_buckets: dict[str, Bucket] = {}
_built_indexes: dict[tuple[str, str], BucketIndex] = {}


def open_bucket(root: Path, meta: BucketMeta) -> Bucket:
    """The mapped bucket, opened once per worker process."""
    name = str(root / meta.path)
    if name not in _open_buckets:
        _open_buckets[name] = Bucket(root, meta)
    return _open_buckets[name]


def forget_buckets(root: Path, live_paths: set[str]) -> None:
    """Unmap what the snapshot no longer has; other checkpoints' buckets are not ours to forget."""
    prefix = f"{root}/"
    for name in [n for n in _open_buckets if n.startswith(prefix) and n.removeprefix(prefix) not in live_paths]:
        del _open_buckets[name]
    for key in [k for k in _built_indexes if k[0].startswith(prefix) and k[0].removeprefix(prefix) not in live_paths]:
        del _built_indexes[key]


class StoreSnapshot:
    """One store's buckets; ordinals below `current_from` are of earlier batches."""

    def __init__(
        self, root: Path, store: StorePlan, earlier: list[BucketMeta], current: list[BucketMeta], timezone: str
    ) -> None:
        self.store = store
        self._root = root
        self._timezone = timezone
        self.metas = [*earlier, *current]
        self.current_from = len(earlier)

    def bucket(self, ordinal: int) -> Bucket:
        return open_bucket(self._root, self.metas[ordinal])

    def index(self, ordinal: int, index: IndexPlan) -> BucketIndex:
        """The bucket's index; one that the bucket was written without is built here and remembered."""
        bucket = self.bucket(ordinal)
        found = bucket.index(index.id)
        if found is not None:
            return found
        key = (str(self._root / bucket.meta.path), index.id)
        if key not in _built_indexes:
            _built_indexes[key] = build_index(
                index, lambda column: bucket.column(column.name), bucket.meta.rows, self._timezone
            )
        return _built_indexes[key]

    def times_of_bucket(self, ordinal: int) -> I64 | None:
        bucket = self.bucket(ordinal)
        event_time = self.store.event_time
        return bucket.times(event_time) if event_time in bucket.meta.columns and event_time else None

    def refs(self, ordinal: int, rows: npt.NDArray[np.uint32]) -> U64:
        return make_refs(ordinal, rows)

    def column(self, name: str, refs: U64) -> pa.Array:
        buckets = self._touched(refs)
        return gather_rows([None if bucket is None else bucket.column(name) for bucket in buckets], refs)

    def times(self, refs: U64) -> I64:
        event_time = self.store.event_time
        if event_time is None:
            raise ValueError(f"store {self.store.id} has no event time")
        return gather_numpy([None if b is None else b.times(event_time) for b in self._touched(refs)], refs)

    def passes(self, selection: Expression, refs: U64) -> Mask | None:
        """Which referenced rows pass the selection; None for all. Bits where the bucket has them, else evaluated."""
        if selection == TRUE or len(refs) == 0:
            return None
        name = str(selection)
        touched = [bucket for bucket in self._touched(refs) if bucket is not None]
        places = {bucket.meta.selections.index(name) if name in bucket.meta.selections else -1 for bucket in touched}
        if len(places) == 1 and -1 not in places:
            (place,) = places
            return unpack_mask(self.selection_words(place // 64, refs), place)
        return self._passes_by_bucket(selection, name, refs)

    def selection_words(self, word: int, refs: U64) -> U64:
        return gather_numpy([None if b is None else b.selection_words(word) for b in self._touched(refs)], refs)

    def in_batches_from(self, batch: int, refs: U64) -> Mask | None:
        """Which referenced rows arrived in `batch` or later; None for all. Merges never straddle such a batch."""
        young = np.array([meta.lower_batch >= batch for meta in self.metas])
        return None if young.all() else young[ordinals_of(refs)]

    def _passes_by_bucket(self, selection: Expression, name: str, refs: U64) -> Mask:
        mask = np.zeros(len(refs), np.bool_)
        ordinals = ordinals_of(refs)
        for ordinal in np.unique(ordinals).tolist():
            here = np.flatnonzero(ordinals == ordinal)
            bucket = self.bucket(ordinal)
            if name in bucket.meta.selections:
                place = bucket.meta.selections.index(name)
                mask[here] = unpack_mask(self.selection_words(place // 64, refs[here]), place)
            elif set(bucket.meta.columns) >= _column_names(selection):
                mask[here] = self._evaluated(selection, refs[here])
            # Otherwise the bucket was written for others and lies before the query's first batch: nothing passes.
        return mask

    def _evaluated(self, selection: Expression, refs: U64) -> Mask:
        return evaluate_mask(selection, lambda c: self.column(c.name, refs), len(refs), timezone=self._timezone)

    def _touched(self, refs: U64) -> list[Bucket | None]:
        if len(self.metas) == 1:
            return [self.bucket(0)]
        used = np.zeros(len(self.metas), np.bool_)
        used[ordinals_of(refs)] = True
        return [self.bucket(ordinal) if used[ordinal] else None for ordinal in range(len(self.metas))]


def _column_names(selection: Expression) -> set[str]:
    return {column.name for column in columns_of(selection)}
