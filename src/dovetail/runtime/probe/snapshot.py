"""The stores as one task sees them: buckets of earlier batches and of this one, in one order on every task.

A reference names a bucket by its ordinal in that order, so tasks can send each other references.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import EvaluationError, charged
from dovetail.kernels.addresses import address_of
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.gather_rows import ABSENT, Gatherer, gather_fixed, make_refs
from dovetail.kernels.match.entry_tables import TableEntries
from dovetail.kernels.match.match_ranges import EntryValues
from dovetail.kernels.match.special_values import ALL_PASS, NO_LOWER, NO_UPPER, NONE_PASS
from dovetail.kernels.select.select_all import OnFailure
from dovetail.kernels.select.select_rows import Mask
from dovetail.kernels.word_bits import WORD_BITS, has_bit
from dovetail.lowering.flat_plan import Ask
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.query.expression import TRUE, Column, Expression
from dovetail.query.join_query import PRESENT
from dovetail.runtime.derived import BatchClock
from dovetail.runtime.factorized.foldable_rows import FoldableRows
from dovetail.runtime.probe.mapped_bucket import UNKNOWN, MappedBucket, map_bucket
from dovetail.runtime.probe.route_entries import EntryChoice, RunEntries
from dovetail.runtime.source.build_index import with_null_key
from dovetail.runtime.source.guarded_index import IndexGuard
from dovetail.store.bucket_file import BucketIndex, BucketMeta

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
OnAskFailure = Callable[[int, EvaluationError], None]
"""The number of what a plan asks that failed, and how."""
NO_TIMES: I64 = np.zeros(0, np.int64)
BucketIdentity = tuple[str, int]
"""What a bucket is known by from batch to batch: its key and its checksum."""


@dataclass(frozen=True)
class SelectionBits:
    """`place[leg, bucket]` is a bit's place or `ALL_PASS`/`NONE_PASS`; `addresses[bucket, word]` where words lie."""

    place: npt.NDArray[np.int32]
    addresses: U64


@dataclass(frozen=True)
class Places:
    """Where one selection's bit lies in every bucket, and what went wrong while it was evaluated."""

    by_bucket: npt.NDArray[np.int32]
    errors: tuple[EvaluationError, ...]


@dataclass(frozen=True)
class BucketFacts:
    """By ordinal what a bucket is known by and what event times its rows may have; which are of earlier batches."""

    identities: list[BucketIdentity]
    earlier: dict[BucketIdentity, int]
    time_ranges: list[tuple[int, int]]


class Entries:
    """Some entries of one bucket's index, and what belongs to them, in the order of the codes.

    Several queries and several nodes start from the same: each array is gathered once per task.
    """

    def __init__(self, bucket: MappedBucket, ordinal: int, index: BucketIndex, part: slice | I64) -> None:
        self._bucket = bucket
        self.codes = index.codes[part]
        self.rows = index.rows[part]
        self.orders = None if index.orders is None else index.orders[part]
        self._part = part
        self._values: dict[Expression, EntryValues] = {}
        self._ordinal = ordinal
        self._times: I64 | None = None
        self._words: dict[tuple[int, int], U64] = {}

    @cached_property
    def refs(self) -> U64:
        return make_refs(self._ordinal, self.rows)

    def times(self, event_time: str) -> I64:
        if self._times is None:
            self._times = self._bucket.file.times(event_time)[self.rows]
        return self._times

    def values(self, expression: Expression, of_index: Callable[[], EntryValues]) -> EntryValues:
        """Order values of an expression, taken from those of the whole index."""
        if expression not in self._values:
            found = of_index()
            self._values[expression] = found if len(found.values) == len(self.codes) else found.take(self._part)
        return self._values[expression]

    def words(self, word: int) -> U64:
        """The n-th word of selection bits."""
        key = word, self._bucket.bits_used(word)
        if key not in self._words:
            self._words[key] = self._bucket.words[word][self.rows]
        return self._words[key]

    def pass_mask(self, place: int) -> Mask:
        """The entries whose bit at `place` is set."""
        return has_bit(self.words(place // WORD_BITS), place)


def time_range_of(meta: BucketMeta) -> tuple[int, int]:
    """What event times its rows may have."""
    return (
        NO_LOWER if meta.min_time_us is None else meta.min_time_us,
        NO_UPPER if meta.max_time_us is None else meta.max_time_us,
    )


class StoreSnapshot:
    """One store's buckets; ordinals from `current_from` on are of this batch."""

    def __init__(
        self, root: Path, store: StorePlan, earlier: list[BucketMeta], current: list[BucketMeta], timezone: str
    ) -> None:
        self.store = store
        self._root = root
        self._timezone = timezone
        self.metas = [*earlier, *current]
        self.current_from = len(earlier)
        self._gatherer_by_column: dict[str, Gatherer] = {}
        self._entries: dict[tuple[int, str, EntryChoice], Entries] = {}
        self._known_places: dict[tuple[Expression, int], Places] = {}
        self._known_addresses: tuple[int, U64] | None = None
        self.guard: IndexGuard | None = None
        """Of the task that looks; without one, a key that fails on some row is an error."""
        self._guarded: dict[tuple[int, str], tuple[Hashable, BucketIndex]] = {}

    @cached_property
    def _buckets(self) -> list[MappedBucket]:
        return [map_bucket(self._root, meta) for meta in self.metas]

    @cached_property
    def facts(self) -> BucketFacts:
        identities = [(meta.key, meta.checksum) for meta in self.metas]
        earlier = {identity: ordinal for ordinal, identity in enumerate(identities[: self.current_from])}
        return BucketFacts(identities, earlier, [time_range_of(meta) for meta in self.metas])

    def entries(self, ordinal: int, index: IndexPlan, choice: EntryChoice) -> Entries:
        key = (ordinal, index.id, choice)
        if key not in self._entries:
            bucket = self._buckets[ordinal]
            _, found = self._index(ordinal, index)
            # A number that every task knows of the bucket, and no two buckets share.
            part = choice.positions(found.codes, bucket.meta.checksum)
            self._entries[key] = Entries(bucket, ordinal, found, part)
        return self._entries[key]

    def entry_table(self, ordinal: int, index: IndexPlan, choice: EntryChoice) -> TableEntries:
        return self._buckets[ordinal].entry_table(*self._index(ordinal, index), choice)

    def has_whole_index(self, ordinal: int, index: IndexPlan) -> bool:
        """Whether the bucket's index has all rows, whoever uses it."""
        bucket = self._buckets[ordinal]
        if bucket.file.has_index(index.id):
            return True
        return isinstance(bucket.index(index, self._timezone, self.store.event_time), BucketIndex)

    def _index(self, ordinal: int, index: IndexPlan) -> tuple[Hashable, BucketIndex]:
        """Under a key that tells it from others of the bucket: one that fails on some row is of those that want it."""
        bucket = self._buckets[ordinal]
        whole = bucket.index(index, self._timezone, self.store.event_time)
        if isinstance(whole, BucketIndex):
            return index.id, whole
        if self.guard is None:
            raise whole
        known = self._guarded.get((ordinal, index.id))
        if known is None:
            built, wanted = self.guard.made(
                self.store.id,
                index,
                bucket.meta,
                lambda selections: self._passed_by(bucket, selections),
                whole,
                lambda mask: bucket.index_of(index, mask, self._timezone, self.store.event_time),
            )
            known = self._guarded[ordinal, index.id] = (index.id, wanted), built
        return known

    def _passed_by(self, bucket: MappedBucket, selections: Set[Expression]) -> Mask:
        """The rows at home that pass some of these. One that fails passes none: who asks for it fails elsewhere."""
        passed = np.zeros(bucket.meta.home_rows, np.bool_)
        for selection in selections:
            try:
                place = bucket.place(selection, str(selection), self._timezone)
            except Exception as error:  # noqa: BLE001 - whatever the selection raises on these rows
                charged(error)
                continue
            if place == ALL_PASS:
                return np.ones(len(passed), np.bool_)
            if place != NONE_PASS:
                passed |= has_bit(bucket.words[place // WORD_BITS], place)[: len(passed)]
        return passed

    def code_addresses(self, columns: tuple[Column, ...], placing: int | None) -> list[tuple[int, int]]:
        """By bucket where the codes of its rows lie, and the bytes that tell which have no NULL in them: 0 if none."""
        return [bucket.code_address(columns, placing, self._timezone) for bucket in self._buckets]

    def foldable_rows(
        self, ordinal: int, index: IndexPlan, choice: EntryChoice, place: int, *, is_timed: bool
    ) -> FoldableRows:
        """Entries whose selection bit lies at `place`, ready to be folded; prepared once per worker and bucket."""
        entries = self.entries(ordinal, index, choice)

        def make(clock: BatchClock | None = None) -> FoldableRows:
            times = entries.times(self.event_time) if is_timed else None
            if place == ALL_PASS:
                return FoldableRows(entries.codes, times, entries.rows, clock)
            passing = np.flatnonzero(entries.pass_mask(place))
            passing_times = None if times is None else times[passing]
            return FoldableRows(entries.codes[passing], passing_times, entries.rows[passing], clock)

        if isinstance(choice, RunEntries):
            # The codes of this batch: nobody asks for just these again.
            return make()
        return self._buckets[ordinal].foldable_rows((index.id, choice, place, is_timed), make)

    def bucket_column(self, ordinal: int, rows: npt.NDArray[Any]) -> Callable[[Column], pa.Array]:
        """Columns of some rows of one bucket."""
        return lambda column: self._buckets[ordinal].values(column, rows, self._timezone)

    def with_null_key(self, ordinal: int, index: IndexPlan, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Those of some rows of one bucket that have a NULL in their key."""
        return rows[with_null_key(index, self.bucket_column(ordinal, rows), len(rows), self._timezone)]

    def entry_values(self, ordinal: int, index: IndexPlan, entries: Entries, expression: Expression) -> EntryValues:
        """Order values of an expression over `row` (or of `EVENT_TIME`), in the order of these entries."""
        bucket = self._buckets[ordinal]
        return entries.values(
            expression,
            lambda: bucket.entry_values(
                *self._index(ordinal, index), expression, self._timezone, self.store.event_time
            ),
        )

    def column(self, column: Column, refs: U64) -> pa.Array:
        """The values of a column of the store; NULL in rows of buckets that lack it, and in rows that are not there."""
        present_mask = refs != ABSENT
        if column.name == PRESENT:
            return pa.array(present_mask, mask=~present_mask)
        if not present_mask.all():
            idx = pa.array(np.cumsum(present_mask) - 1, mask=~present_mask)
            return self._present_column(column, refs[present_mask]).take(idx)
        return self._present_column(column, refs)

    def _present_column(self, column: Column, refs: U64) -> pa.Array:
        name = column.name
        if name not in self._gatherer_by_column:
            if not any(name in meta.columns for meta in self.metas):
                return pa.nulls(len(refs), arrow_type(column.type, self._timezone))
            self._gatherer_by_column[name] = Gatherer(
                [bucket.file.column(name) if name in bucket.meta.columns else None for bucket in self._buckets]
            )
        return self._gatherer_by_column[name].gather(refs)

    def words(self, ordinal: int) -> list[U64]:
        """The words of selection bits of one bucket, by row."""
        return self._buckets[ordinal].words

    def bucket_times(self, ordinal: int) -> I64:
        """Event times of one bucket, by row."""
        return self._buckets[ordinal].file.times(self.event_time)

    def times(self, refs: U64) -> I64:
        return gather_fixed(self.time_addresses, refs, 8).view(np.int64)

    def selection_bits(
        self, selections: Sequence[Expression], first_batches: Sequence[int], on_failure: OnFailure
    ) -> SelectionBits:
        """Where each leg finds its selection's bit; buckets before a leg's first batch pass nothing."""
        place = np.empty((len(selections), len(self._buckets)), np.int32)
        for leg, (selection, first_batch) in enumerate(zip(selections, first_batches, strict=True)):
            found = self.places(selection, str(selection), first_batch)
            place[leg] = found.by_bucket
            for error in found.errors:
                on_failure(selection, error)
        return SelectionBits(place, self.word_addresses())

    def places(self, selection: Expression, name: str, first_batch: int) -> Places:
        """By bucket, once for all steps of a batch that ask the same; `name` is its text, by which buckets know it."""
        found = self._known_places.get((selection, first_batch))
        if found is None:
            errors: list[EvaluationError] = []
            by_bucket = np.full(len(self._buckets), NONE_PASS, np.int32)
            for ordinal, bucket in enumerate(self._buckets):
                if bucket.meta.lower_batch < first_batch:
                    continue
                try:
                    by_bucket[ordinal] = self._place(bucket, selection, name)
                except Exception as error:  # noqa: BLE001 - whatever the selection raises on these rows
                    errors.append(charged(error))
            found = self._known_places[selection, first_batch] = Places(by_bucket, tuple(errors))
        return found

    def _place(self, bucket: MappedBucket, selection: Expression, name: str) -> int:
        return ALL_PASS if selection == TRUE else bucket.place(selection, name, self._timezone)

    def places_of_asks(self, asks: Sequence[Ask], numbers: I64, on_failure: OnAskFailure) -> npt.NDArray[np.int32]:
        """`[ask, bucket]`: the same for some of the things that a plan asks, by their numbers."""
        first_batches = np.array([asks[number].first_batch for number in numbers.tolist()], np.int64)
        places = np.full((len(numbers), len(self._buckets)), NONE_PASS, np.int32)
        for ordinal, bucket in enumerate(self._buckets):

            def find(number: int, bucket: MappedBucket = bucket) -> int | None:
                ask = asks[number]
                try:
                    return self._place(bucket, ask.selection, ask.text)
                except Exception as error:  # noqa: BLE001 - whatever the selection raises on these rows
                    on_failure(number, charged(error))
                    return None

            seen = first_batches <= bucket.meta.lower_batch
            found = bucket.known_places.of(asks, numbers[seen], find)
            places[seen, ordinal] = np.where(found == UNKNOWN, NONE_PASS, found)
        return places

    def word_addresses(self) -> U64:
        """Where every word of every bucket lies; the same array until some bucket gains a word."""
        word_counts = [len(bucket.words) for bucket in self._buckets]
        if self._known_addresses is None or self._known_addresses[0] != sum(word_counts):
            addresses = np.zeros((len(self._buckets), max(word_counts, default=1) or 1, 2), np.uint64)
            for ordinal, bucket in enumerate(self._buckets):
                if bucket.addresses:
                    addresses[ordinal, : len(bucket.words)] = bucket.addresses
            self._known_addresses = sum(word_counts), addresses
        return self._known_addresses[1]

    @property
    def event_time(self) -> str:
        if self.store.event_time is None:
            raise ValueError(f"store {self.store.id} has no event time")
        return self.store.event_time

    @cached_property
    def time_addresses(self) -> U64:
        """By bucket where the event times of its rows begin; 0 without event times."""
        if self.store.event_time is None:
            return np.zeros(len(self.metas), np.uint64)
        return np.array([address_of(bucket.file.times(self.event_time)) for bucket in self._buckets], np.uint64)
