"""What compiled code reads of the stores in one task: addresses of entries, times, selection bits and codes.

The arrays behind the addresses are held here and by the snapshots of the stores, which live as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dovetail.core.errors import EvaluationError
from dovetail.kernels.match.entry_tables import (
    Bundle,
    BundledEntries,
    TableArrays,
    TableEntries,
    bundle_of_bucket,
    bundle_of_buckets,
    table_arrays,
)
from dovetail.kernels.match.match_hop import BucketArrays
from dovetail.kernels.match.special_values import NONE_PASS
from dovetail.lowering.flat_plan import FlatPlan
from dovetail.plan.store_plan import IndexPlan
from dovetail.runtime.probe.bundles import Bundles
from dovetail.runtime.probe.route_entries import EntryChoice, RunEntries
from dovetail.runtime.probe.snapshot import OnAskFailure, StoreSnapshot

U64 = npt.NDArray[np.uint64]
WORTH_BUNDLES = 32
"""So many times a batch's rows look into a bucket: to put entries together costs more than a few looks save."""


@dataclass
class _Table:
    """An index of a store, or some entries of it, as far as somebody asks for it."""

    snapshot: StoreSnapshot
    index: IndexPlan
    choice: EntryChoice
    ordinals: set[int] = field(default_factory=set)
    earlier: list[Bundle] = field(default_factory=list)
    current: list[Bundle] = field(default_factory=list)


class HopTables:
    """Filled with what a hop needs, and kept for the next: all hops of a batch see the same buckets.

    `tables`, `buckets`, `places` and `codes` are for the kernels.
    """

    def __init__(self, flat: FlatPlan, snapshots: Mapping[str, StoreSnapshot], bundles: Bundles) -> None:
        self.flat = flat
        self._snapshots = [snapshots[store] for store in flat.stores]
        self._bundles = bundles
        self._number_by_table: dict[tuple[str, str, EntryChoice], int] = {}
        self._tables: list[_Table] = []
        self._lookers = Counter(
            (flat.indexes[node.index][0], flat.indexes[node.index][1].id) for hop in flat.hops for node in hop.nodes
        )
        self._entries: dict[tuple[str, str, EntryChoice, int], TableEntries] = {}
        self._held: list[BundledEntries] = []
        self._width = max((len(snapshot.metas) for snapshot in self._snapshots), default=0)
        self._nobody = max(self._width, 1)
        """The number of no bucket."""
        self._arrays: TableArrays | None = None
        self._places = np.full((max(len(flat.asks), 1), max(self._width, 1)), NONE_PASS, np.int32)
        self._is_placed = np.zeros(len(self._places), np.bool_)
        self._store_of_ask = np.array([ask.store for ask in flat.asks], np.int64)
        self._errors_by_ask: dict[int, list[EvaluationError]] = {}
        self._buckets: tuple[list[U64], BucketArrays] | None = None

    def entries(self, snapshot: StoreSnapshot, index: IndexPlan, choice: EntryChoice, ordinal: int) -> TableEntries:
        """Those of one bucket, where they lie."""
        key = (snapshot.store.id, index.id, choice, ordinal)
        found = self._entries.get(key)
        if found is None:
            found = self._entries[key] = snapshot.entry_table(ordinal, index, choice)
        return found

    def add(self, snapshot: StoreSnapshot, index: IndexPlan, choice: EntryChoice, ordinals: Iterable[int]) -> int:
        """A table of entries, by its number; a bucket that nobody asks for may lack the index, and is not opened."""
        key = (snapshot.store.id, index.id, choice)
        number = self._number_by_table.setdefault(key, len(self._tables))
        if number == len(self._tables):
            self._tables.append(_Table(snapshot, index, choice))
            self._arrays = None
        table = self._tables[number]
        new = set(ordinals) - table.ordinals
        if new:
            table.ordinals |= new
            self._arrays = None
            current = sorted(ordinal for ordinal in table.ordinals if ordinal >= snapshot.current_from)
            table.current = [self._one(table, ordinal) for ordinal in current]
            if min(new) < snapshot.current_from:
                table.earlier = self._bundled(table)
        return number

    def _one(self, table: _Table, ordinal: int) -> Bundle:
        snapshot = table.snapshot
        entries = self.entries(snapshot, table.index, table.choice, ordinal)
        return bundle_of_bucket(
            entries, ordinal, int(snapshot.time_addresses[ordinal]), snapshot.facts.time_ranges[ordinal]
        )

    def _bundled(self, table: _Table) -> list[Bundle]:
        """Buckets of earlier batches, many of them as one where that is worth it."""
        snapshot = table.snapshot
        earlier = [ordinal for ordinal in table.ordinals if ordinal < snapshot.current_from]
        looks = self._lookers[table.snapshot.store.id, table.index.id] * len(earlier)
        if isinstance(table.choice, RunEntries) or looks < WORTH_BUNDLES:
            return [self._one(table, ordinal) for ordinal in sorted(earlier)]

        def entries_of(ordinal: int) -> TableEntries:
            return self.entries(snapshot, table.index, table.choice, ordinal)

        # What is made for those alone that use it now is made anew for others, and so belongs into no bundle.
        whole = [ordinal for ordinal in earlier if snapshot.has_whole_index(ordinal, table.index)]
        covering = self._bundles.cover(snapshot, (table.index.id, table.choice), whole, entries_of, self._nobody)
        alone = sorted(set(earlier) - (set(whole) - set(covering.alone)))
        found = [self._one(table, ordinal) for ordinal in alone]
        for entries, buckets, time_range in covering.bundled:
            # An older bundle may be put into a larger one while its address is still in use.
            self._held.append(entries)
            found.append(bundle_of_buckets(entries, buckets, time_range))
        return found

    def arrays(self) -> TableArrays:
        """All tables that were added so far."""
        if self._arrays is None:
            self._arrays = table_arrays([(table.earlier, table.current) for table in self._tables])
        return self._arrays

    def places(self, asks: Iterable[int], on_failure: OnAskFailure) -> npt.NDArray[np.int32]:
        """Where the bits of these selections lie, by selection and bucket; those of others are not looked at."""
        asked = np.array(sorted(asks), np.int64)
        new = asked[~self._is_placed[asked]]
        for store in np.unique(self._store_of_ask[new]).tolist():
            numbers = new[self._store_of_ask[new] == store]
            found = self._snapshots[store].places_of_asks(self.flat.asks, numbers, self._note_error)
            self._places[numbers, : found.shape[1]] = found
        self._is_placed[new] = True
        if self._errors_by_ask:
            for number in asked.tolist():
                for error in self._errors_by_ask.get(number, ()):
                    on_failure(number, error)
        return self._places

    def _note_error(self, ask: int, error: EvaluationError) -> None:
        self._errors_by_ask.setdefault(ask, []).append(error)

    def buckets(self) -> BucketArrays:
        """Once all `places` are known: a selection that is younger than a bucket may have added a word to it."""
        words = [snapshot.word_addresses() for snapshot in self._snapshots]
        known = self._buckets
        if known is None or any(now is not before for now, before in zip(words, known[0], strict=True)):
            known = self._buckets = words, self._bucket_arrays(words)
        return known[1]

    def _bucket_arrays(self, words: list[U64]) -> BucketArrays:
        shape = (max(len(self._snapshots), 1), max(self._width, 1))
        arrays = BucketArrays(
            count=np.array([len(snapshot.metas) for snapshot in self._snapshots], np.int64),
            current_from=np.array([snapshot.current_from for snapshot in self._snapshots], np.int64),
            times=np.zeros(shape, np.uint64),
            lower_batch=np.zeros(shape, np.int64),
            upper_batch=np.zeros(shape, np.int64),
            words=np.zeros((*shape, max((each.shape[1] for each in words), default=1), 2), np.uint64),
        )
        for number, snapshot in enumerate(self._snapshots):
            count = len(snapshot.metas)
            if count == 0:
                continue
            arrays.lower_batch[number, :count] = [meta.lower_batch for meta in snapshot.metas]
            arrays.upper_batch[number, :count] = [meta.upper_batch for meta in snapshot.metas]
            arrays.words[number, :count, : words[number].shape[1]] = words[number]
            if snapshot.store.event_time is not None:
                arrays.times[number, :count] = snapshot.time_addresses
        return arrays

    def codes(self, columns: Iterable[int]) -> tuple[U64, U64]:
        """By code column and bucket where the codes of its rows begin, and the bytes that tell a NULL: 0 if none."""
        shape = (max(len(self.flat.code_columns), 1), max(self._width, 1))
        codes, valid = np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
        for number in columns:
            column = self.flat.code_columns[number]
            found = self._snapshots[column.store].code_addresses(column.columns, column.placing)
            codes[number, : len(found)] = [address for address, _ in found]
            valid[number, : len(found)] = [address for _, address in found]
        return codes, valid
