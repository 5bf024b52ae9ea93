"""What compiled code reads of the stores in one task: addresses of entries, times, selection bits and codes.

The arrays behind the addresses are held here and by the snapshots of the stores, which live as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from dovetail.core.errors import EvaluationError
from dovetail.kernels.match.entry_tables import NO_ENTRIES, TableArrays, TableEntries, table_arrays
from dovetail.kernels.match.match_hop import BucketArrays
from dovetail.kernels.match.special_values import NONE_PASS
from dovetail.lowering.flat_plan import FlatPlan
from dovetail.plan.store_plan import IndexPlan
from dovetail.runtime.probe.route_entries import EntryChoice
from dovetail.runtime.probe.snapshot import OnAskFailure, StoreSnapshot, time_range_of

U64 = npt.NDArray[np.uint64]


class HopTables:
    """Filled with what a hop needs, and kept for the next: all hops of a batch see the same buckets.

    `entries`, `buckets`, `places` and `codes` are for the kernels.
    """

    def __init__(self, flat: FlatPlan, snapshots: Mapping[str, StoreSnapshot]) -> None:
        self.flat = flat
        self._snapshots = [snapshots[store] for store in flat.stores]
        self._number_by_table: dict[tuple[str, str, EntryChoice], int] = {}
        self._tables: list[list[tuple[int, ...]]] = []
        self._held: list[TableEntries] = []
        self._width = max((len(snapshot.metas) for snapshot in self._snapshots), default=0)
        self._entries: TableArrays | None = None
        self._places = np.full((max(len(flat.asks), 1), max(self._width, 1)), NONE_PASS, np.int32)
        self._is_placed = np.zeros(len(self._places), np.bool_)
        self._store_of_ask = np.array([ask.store for ask in flat.asks], np.int64)
        self._errors_by_ask: dict[int, list[EvaluationError]] = {}
        self._buckets: tuple[list[U64], BucketArrays] | None = None

    def add(self, snapshot: StoreSnapshot, index: IndexPlan, choice: EntryChoice, ordinals: Iterable[int]) -> int:
        """A table of entries, by its number; a bucket that nobody asks for may lack the index, and is not opened."""
        key = (snapshot.store.id, index.id, choice)
        number = self._number_by_table.setdefault(key, len(self._tables))
        if number == len(self._tables):
            self._tables.append([NO_ENTRIES] * len(snapshot.metas))
        table = self._tables[number]
        for ordinal in ordinals:
            if table[ordinal] is NO_ENTRIES:
                entries = snapshot.entry_table(ordinal, index, choice)
                self._held.append(entries)
                table[ordinal] = entries.address
                self._entries = None
        return number

    def entries(self) -> TableArrays:
        """All that were added so far."""
        if self._entries is None:
            self._entries = table_arrays(self._tables, self._width)
        return self._entries

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
            first_us=np.zeros(shape, np.int64),
            last_us=np.zeros(shape, np.int64),
            lower_batch=np.zeros(shape, np.int64),
            upper_batch=np.zeros(shape, np.int64),
            words=np.zeros((*shape, max((each.shape[1] for each in words), default=1)), np.uint64),
        )
        for number, snapshot in enumerate(self._snapshots):
            count = len(snapshot.metas)
            if count == 0:
                continue
            ranges = [time_range_of(meta) for meta in snapshot.metas]
            arrays.first_us[number, :count] = [first for first, _ in ranges]
            arrays.last_us[number, :count] = [last for _, last in ranges]
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
