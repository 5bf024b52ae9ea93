"""Buckets as a worker has them mapped, with what was derived from them for queries younger than the bucket.

They stay mapped between batches; that is a cache checked against the snapshot, never the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import charged
from dovetail.kernels.addresses import address_of
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.evaluate import evaluate_mask
from dovetail.kernels.match.entry_tables import TableEntries, make_directory
from dovetail.kernels.match.hash_keys import KeyCodes, hash_keys
from dovetail.kernels.match.match_ranges import EntryValues
from dovetail.kernels.match.order_values import order_values
from dovetail.kernels.match.special_values import NONE_PASS
from dovetail.kernels.select.select_rows import Mask, any_of
from dovetail.kernels.word_bits import WORD_BITS, has_bit, lie_at, word_count
from dovetail.lowering.flat_plan import Ask
from dovetail.plan.store_plan import EVENT_TIME, IndexPlan
from dovetail.query.expression import Call, Column, Expression, columns_of
from dovetail.query.join_query import PRESENT
from dovetail.runtime.derived import BatchClock, Derived
from dovetail.runtime.factorized.foldable_rows import FoldableRows
from dovetail.runtime.probe.route_entries import EntryChoice, RunEntries
from dovetail.runtime.source.build_index import build_index, order_column
from dovetail.store.bucket_file import Bucket, BucketIndex, BucketMeta

U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
UNKNOWN = np.iinfo(np.int32).min


class KnownPlaces:
    """Where the bits of what a plan asks lie in a bucket: found once for the bucket, whatever the number of batches.

    Asks are known by their numbers: hundreds of queries ask a bucket thousands of things.
    """

    def __init__(self, clock: BatchClock) -> None:
        self._clock = clock
        self.asked_since = clock.batch
        """When the plan came whose asks these are."""
        self._asks: Sequence[Ask] | None = None
        self._place: I32 = np.empty(0, np.int32)

    def of(self, asks: Sequence[Ask], numbers: I64, find: Callable[[int], int | None]) -> I32:
        """By number; `find` is asked for those that are new. None is no place now, and asked for again next time."""
        if self._asks is not asks:
            self._asks, self._place = asks, np.full(len(asks), UNKNOWN, np.int32)
            self.asked_since = self._clock.batch
        found = self._place[numbers]
        new = np.flatnonzero(found == UNKNOWN)
        for at in new.tolist():
            place = find(int(numbers[at]))
            if place is not None:
                found[at] = self._place[numbers[at]] = place
        return found


class MappedBucket:
    """A bucket of this worker process, with what was derived from it for queries younger than the bucket."""

    def __init__(self, root: Path, meta: BucketMeta) -> None:
        self.file = Bucket(root, meta)
        self.meta = meta
        self._clock = BatchClock()
        self._derived = Derived(self._clock)
        self.words: list[U64] = []
        self.addresses: list[tuple[int, int]] = []
        """Where each of the `words` lies."""
        for word in range(word_count(len(meta.selections))):
            self._add_word(self.file.selection_words(word))
        self._place_by_selection = {name: place for place, name in enumerate(meta.selections)}
        self._next_place = self._first_added_place = len(self.words) * WORD_BITS
        self._no_bits: U64 | None = None
        self._placed_in: dict[str, int] = {}
        """Of selections that came after the bucket, when somebody last asked for their places."""
        self.known_places = KnownPlaces(self._clock)

    def index(self, index: IndexPlan, timezone: str, event_time: str | None) -> BucketIndex | Exception:
        """The bucket's index; one that the bucket was written without is built once, of the rows at home.

        Or why it cannot be built of all of them.
        """

        def build() -> BucketIndex | Exception:
            try:
                return self.index_of(index, None, timezone, event_time)
            except Exception as error:  # noqa: BLE001 - whatever the key raises on these rows
                return charged(error)

        return self.file.index(index.id) or self._derived.of(("index", index.id), build)

    def index_of(self, index: IndexPlan, wanted: Mask | None, timezone: str, event_time: str | None) -> BucketIndex:
        """Built of some of the rows at home."""
        length = self.meta.home_rows
        rows = None if wanted is None else np.flatnonzero(wanted)
        taken = None if rows is None else pa.array(rows)

        def column_of(column: Column) -> pa.Array:
            whole = self.file.column(column.name)
            return whole.slice(0, length) if taken is None else whole.take(taken)

        built = build_index(index, column_of, length if rows is None else len(rows), timezone, event_time)
        return built if rows is None else built.moved(rows)

    def entry_values(
        self, key: Hashable, whole: BucketIndex, expression: Expression, timezone: str, event_time: str | None
    ) -> EntryValues:
        """Order values of an expression, in the order of an index; computed once.

        All NULL where the bucket lacks a column: whoever asks for it is too young to use these rows.
        """
        if expression != EVENT_TIME and not {c.name for c in columns_of(expression)} <= set(self.meta.columns):
            length = len(whole.rows)
            return EntryValues(np.zeros(length, np.int64), np.ones(length, np.bool_))

        def order() -> EntryValues:
            rows = whole.rows
            column = order_column(
                expression, lambda column: self.file.column(column.name), self.meta.rows, timezone, event_time
            )
            found = order_values(column)
            is_null = None if found.valid_mask is None else ~found.valid_mask[rows]
            return EntryValues(found.values[rows], is_null)

        return self._derived.of(("order values", key, expression), order)

    def entry_table(self, key: Hashable, whole: BucketIndex, choice: EntryChoice) -> TableEntries:
        """Some entries of an index, which has that key here, with a directory.

        A run of neighbours stays where it is, others are put together first.
        """

        def make() -> TableEntries:
            # A number that every task knows of the bucket, and no two buckets share.
            part = choice.positions(whole.codes, self.meta.checksum)
            if isinstance(part, slice) and part.step in (None, 1):
                directory = self._derived.of(("directory", key), lambda: make_directory(whole.codes))
                return TableEntries(whole.codes, whole.rows, part.start, max(part.start, part.stop), directory)
            codes, rows = np.ascontiguousarray(whole.codes[part]), np.ascontiguousarray(whole.rows[part])
            return TableEntries(codes, rows, 0, len(codes), make_directory(codes))

        # Those of the codes of this batch nobody asks for again.
        return make() if isinstance(choice, RunEntries) else self._derived.of(("table", key, choice), make)

    def code_address(self, columns: tuple[Column, ...], placing: int | None, timezone: str) -> tuple[int, int]:
        """Where the codes by row of a key of these columns lie, and the bytes that tell which have no NULL: 0 if none.

        Computed once.
        """

        def make() -> tuple[KeyCodes, tuple[int, int]]:
            known = set(self.meta.columns)
            made = hash_keys(
                [
                    self.file.column(column.name)
                    if column.name in known
                    else pa.nulls(self.meta.rows, arrow_type(column.type, timezone))
                    for column in columns
                ],
                placing,
            )
            valid = 0 if made.valid_mask is None else address_of(made.valid_mask)
            return made, (address_of(made.codes), valid)

        return self._derived.of(("codes", columns, placing), make)[1]

    def place(self, selection: Expression, name: str, timezone: str) -> int:
        """Where the bit of the selection called `name` lies; one that came after the bucket is evaluated once."""
        place = self._place_by_selection.get(name)
        if place is None:
            mask = self._mask(selection, timezone)
            if mask is None:
                return NONE_PASS
            place = self._place_by_selection[name] = self._next_place
            self._add_bit(place, mask)
        if place >= self._first_added_place:
            self._placed_in[name] = self._clock.batch
        return place

    def foldable_rows(
        self, key: tuple[str, EntryChoice, int, bool], make: Callable[[BatchClock], FoldableRows]
    ) -> FoldableRows:
        """Made once: by the index, the entries of it, the place of a selection, and whether they are by time."""
        return self._derived.of(("foldable", *key), lambda: make(self._clock))

    def next_batch(self) -> None:
        """Forget what nobody asks for any more, before anybody of the next batch has an address of it."""
        self._clock.batch += 1
        if self._clock.is_time_to_forget:
            self._derived.forget_unused()
            for each in self._derived:
                if isinstance(each, FoldableRows):
                    each.forget_unused()
            self._forget_added_words()

    def _forget_added_words(self) -> None:
        """Of words that were added later, those whose selections were last placed long ago, and for another plan.

        A plan that goes on knows its places and does not ask again. Numbers of words stay: in place of one that is
        forgotten there is one without bits.
        """
        since = self.known_places.asked_since
        names_by_word: dict[int, list[str]] = {}
        for name in self._placed_in:
            names_by_word.setdefault(self._place_by_selection[name] // WORD_BITS, []).append(name)
        for word, names in names_by_word.items():
            last = max(self._placed_in[name] for name in names)
            if self.bits_used(word) < WORD_BITS or last >= since or not self._clock.is_long_ago(last):
                continue
            for name in names:
                del self._placed_in[name], self._place_by_selection[name]
            if self._no_bits is None:
                self._no_bits = np.zeros(self.meta.rows, np.uint64)
            self.words[word], self.addresses[word] = self._no_bits, lie_at(self._no_bits)

    def values(self, column: Column, rows: npt.NDArray[Any], timezone: str) -> pa.Array:
        """A column of these rows; NULL if the bucket lacks it. Whatever a bucket holds is present."""
        if column.name == PRESENT:
            return pa.array(np.ones(len(rows), np.bool_))
        if column.name not in self.meta.columns:
            return pa.nulls(len(rows), arrow_type(column.type, timezone))
        return self.file.column(column.name).take(pa.array(rows))

    def _add_bit(self, place: int, mask: Mask) -> None:
        """Younger selections share words of their own, those of the file are mapped read-only."""
        word, bit = divmod(place, WORD_BITS)
        if bit == 0:
            self._add_word(np.zeros(self.meta.rows, np.uint64))
        self.words[word] |= mask.astype(np.uint64) << np.uint64(bit)
        self._next_place += 1

    def _add_word(self, word: U64) -> None:
        self.words.append(word)
        self.addresses.append(lie_at(word))

    def bits_used(self, word: int) -> int:
        """How many bits of a word are decided: more may come as long as not all are."""
        return min(self._next_place - word * WORD_BITS, WORD_BITS)

    def _mask(self, selection: Expression, timezone: str) -> Mask | None:
        """The rows that pass; None where the bucket cannot tell.

        Of one or the other it tells what it can: a join that is kept for several users wants the rows of each, and a
        user younger than the bucket must not hide those of an older one.
        """
        place = self._place_by_selection.get(str(selection))
        if place is not None:
            return has_bit(self.words[place // WORD_BITS], place)
        if {column.name for column in columns_of(selection)} <= set(self.meta.columns):
            return evaluate_mask(
                selection, lambda column: self.file.column(column.name), self.meta.rows, timezone=timezone
            )
        if not (isinstance(selection, Call) and selection.function == "or"):
            return None
        masks = [mask for part in selection.args if (mask := self._mask(part, timezone)) is not None]
        return any_of(masks, self.meta.rows) if masks else None


_mapped_buckets: dict[str, MappedBucket] = {}


def map_bucket(root: Path, meta: BucketMeta) -> MappedBucket:
    """The mapped bucket, opened once per worker process, and again if somebody wrote to its file."""
    name = f"{root}/{meta.key}"
    found = _mapped_buckets.get(name)
    if found is None or not found.file.is_untouched():
        found = _mapped_buckets[name] = MappedBucket(root, meta)
    return found


def forget_buckets(root: Path, live_keys: set[str]) -> None:
    """A batch begins: unmap what its snapshot does not have, and of the rest what was made for nobody who is left.

    Other checkpoints' buckets are not ours to forget.
    """
    prefix = f"{root}/"
    for name in [each for each in _mapped_buckets if each.startswith(prefix)]:
        if name.removeprefix(prefix) in live_keys:
            _mapped_buckets[name].next_batch()
        else:
            del _mapped_buckets[name]
