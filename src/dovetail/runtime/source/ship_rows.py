"""Rows on their way to the partitions that keep them (S1, A10): what a source task sends, and what arrives.

A message holds rows of one store for one partition as an Arrow stream, those that are at home there first:
    c:<name>   a payload column, as narrow as its values allow
    s:<n>      up to 64 selection bits a row, for all tested selections of the store in their order, if they are sent
    m:<i>      whether the row is to be found there through the store's index i: one bit a row
Rows of several tasks join position by position. What fails in one task is told to all partitions (`Kind.FAILED`): the
bits of such a selection mean nothing, and nobody keeps such an index.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.match.hash_keys import group_of_codes
from dovetail.kernels.narrow_columns import narrow_columns, widen_columns
from dovetail.kernels.select.select_all import compared_columns
from dovetail.kernels.select.select_rows import Mask
from dovetail.kernels.word_bits import WORD_BITS
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.shipping import Shipping
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.source.build_index import RowKeys, row_keys
from dovetail.runtime.source.wanted_rows import RowSelector, StoreRows

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
MESSAGE_BYTES = 16 << 20
"""About the most that one message has: Spark holds each in memory as a whole, and 2 GiB is the end."""

_HEAD = b"shipped"
_NOWHERE = -1


@dataclass(frozen=True)
class ShippedRows:
    """Rows of one store as they arrive at a partition; those at home there are the first `home_rows`."""

    store: str
    split: int
    home_rows: int
    table: pa.RecordBatch

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def to_bytes(self) -> bytes:
        head = json.dumps([self.store, self.split, self.home_rows]).encode()
        table = narrow_columns(self.table, [name for name in self.table.schema.names if name.startswith("c:")])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(
            sink, table.schema.with_metadata({**(table.schema.metadata or {}), _HEAD: head})
        ) as writer:
            writer.write_batch(table)
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]

    @staticmethod
    def from_bytes(payload: bytes) -> ShippedRows:
        reader = pa.ipc.open_stream(payload)
        store, split, home_rows = json.loads(reader.schema.metadata[_HEAD])
        return ShippedRows(store, split, home_rows, widen_columns(reader.read_next_batch()))


@dataclass(frozen=True)
class FailedInSource:
    """Selections and indexes of a store that failed on rows of one source task."""

    store: str
    selections: frozenset[str]
    indexes: frozenset[str]

    def to_bytes(self) -> bytes:
        return json.dumps([self.store, sorted(self.selections), sorted(self.indexes)]).encode()

    @staticmethod
    def from_bytes(payload: bytes) -> FailedInSource:
        store, selections, indexes = json.loads(payload)
        return FailedInSource(store, frozenset(selections), frozenset(indexes))


class RowShipper:
    """Ships for one source task; what fails of a query's keys goes to the selector's report."""

    def __init__(self, task: BatchTask, selector: RowSelector) -> None:
        self._task = task
        self._selector = selector
        self._partition_count = task.plan.placement.partition_count

    def ship(self, store: StorePlan, rows: StoreRows, split: int) -> Iterator[Message]:
        """One message for every partition that gets some of the rows; more where they would be too large."""
        found = [self._targets(store, index, rows) for index in store.indexes]
        failed = [index.id for index, own in zip(store.indexes, found, strict=True) if own is None]
        yield from self._failed(store, rows, failed)
        if not rows.length:
            return
        targets = {place: own for place, own in enumerate(found) if own is not None}
        # Without a key rows are indexed where they are at home, wherever that is.
        keyless = {place: own != _NOWHERE for place, own in targets.items() if not store.indexes[place].keys}
        payload = _payload(store, rows, has_bits=sends_bits(self._task.plan, store))
        for parcel, homes in self._parcels(store, targets, rows.length, split):
            for partition in range(self._partition_count):
                is_home = homes == partition
                marks = {place: targets[place] == partition for place in parcel}
                marks |= {place: is_home & is_indexed for place, is_indexed in keyless.items()}
                yield from _send(store.id, split, partition, payload, marks, is_home)

    def _parcels(
        self, store: StorePlan, targets: dict[int, I64], length: int, split: int
    ) -> Iterator[tuple[list[int], I64]]:
        """The indexes of each parcel, and the rows that are at home where it brings them: each row by one parcel."""
        place_by_index = {index: place for place, index in enumerate(store.indexes)}
        parcels = [[place_by_index[index] for index in parcel] for parcel in _shipping(self._task.plan).parcels(store)]
        is_left = np.ones(length, np.bool_)
        for parcel in parcels:
            there = [place for place in parcel if place in targets]
            homes = np.full(length, _NOWHERE)
            for place in there:
                homes = np.where(is_left & (homes == _NOWHERE), targets[place], homes)
            if parcel is parcels[-1]:
                # Dealt out in turn; where a batch brings few rows, not always to the first partitions.
                dealt = (np.arange(length) + self._task.batch + split) % self._partition_count
                homes = np.where(is_left & (homes == _NOWHERE), dealt, homes)
            is_left &= homes == _NOWHERE
            yield there, homes

    def _targets(self, store: StorePlan, index: IndexPlan, rows: StoreRows) -> I64 | None:
        """By row the partition that its key sends it to, `_NOWHERE` where it is not indexed.

        None if the key fails on some row: then no bucket has the index, and users have it made of rows that they want.
        """

        def keys_of(kept: StoreRows) -> RowKeys:
            timezone = self._task.timezone
            return row_keys(index, lambda c: kept.columns[c.name], kept.length, timezone, store.event_time)

        made = self._selector.guarded(store, index, rows, keys_of)
        if made is None or made[1] is not None:
            return None
        keys, _ = made
        placement = self._task.plan.placement_of(store.id, index)
        found: I64 = np.array(placement.partition_by_group)[group_of_codes(keys.codes, placement.group_count)]
        return found if keys.valid_mask is None else np.where(keys.valid_mask, found, _NOWHERE)

    def _failed(self, store: StorePlan, rows: StoreRows, indexes: Collection[str]) -> Iterator[Message]:
        selections = [store.selection_names[place] for place in rows.selections.failed]
        if selections or indexes:
            payload = FailedInSource(store.id, frozenset(selections), frozenset(indexes)).to_bytes()
            for partition in range(self._partition_count):
                yield Message(partition, Kind.FAILED, payload)


def sends_bits(plan: SharedPlan, store: StorePlan) -> bool:
    """Whether rows travel with what selections say of them; else whoever gets them decides again (S7)."""
    read = compared_columns(store.tested_selections) if _shipping(plan).decides_again else None
    return read is None or not read <= set(store.columns)


def _shipping(plan: SharedPlan) -> Shipping:
    if plan.shipping is None:
        raise ValueError("rows are not shipped")
    return plan.shipping


def _payload(store: StorePlan, rows: StoreRows, *, has_bits: bool) -> pa.RecordBatch:
    """What travels of the rows, whereto ever. A selection that failed passes nothing: nobody will ask."""
    arrays = [rows.columns[name] for name in store.columns]
    names = [f"c:{name}" for name in store.columns]
    for word, bits in enumerate(rows.selections.words if has_bits else ()):
        arrays.append(pa.array(bits.astype(_narrowest(rows.selections.count - word * WORD_BITS))))
        names.append(f"s:{word}")
    return pa.RecordBatch.from_arrays(arrays, names)


def _narrowest(bits: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type that has so many bits: few selections shall not weigh more than the row."""
    return next((kind for kind in (np.uint8, np.uint16, np.uint32) if bits <= kind(0).itemsize * 8), np.uint64)


def _send(
    store: str, split: int, partition: int, payload: pa.RecordBatch, marks: dict[int, Mask], is_home: Mask
) -> Iterator[Message]:
    """Rows that are at home there or marked for it."""
    is_sent = is_home.copy()
    for mark in marks.values():
        is_sent |= mark
    home_idx, other_idx = np.flatnonzero(is_home), np.flatnonzero(is_sent & ~is_home)
    for home, other in _in_messages(home_idx, other_idx, payload):
        idx = np.concatenate([home, other])
        arrays = [*payload.take(pa.array(idx)).columns, *(pa.array(mark[idx]) for mark in marks.values())]
        names = [*payload.schema.names, *(f"m:{place}" for place in marks)]
        shipped = ShippedRows(store, split, len(home), pa.RecordBatch.from_arrays(arrays, names))
        yield Message(partition, Kind.ROWS, shipped.to_bytes())


def _in_messages(home_idx: I64, other_idx: I64, payload: pa.RecordBatch) -> Iterator[tuple[I64, I64]]:
    """The rows in portions of about `MESSAGE_BYTES`."""
    row_bytes = max(payload.nbytes / payload.num_rows, 1.0)
    size = max(int(MESSAGE_BYTES / row_bytes), 1)
    for lower in range(0, len(home_idx) + len(other_idx), size):
        home = home_idx[lower : lower + size]
        begin = max(lower - len(home_idx), 0)
        yield home, other_idx[begin : begin + size - len(home)]


def marked_rows(parts: Sequence[pa.RecordBatch], place: int) -> Mask:
    """Which rows of all parts together are to be found through the index at `place`."""
    name = f"m:{place}"
    return np.concatenate(
        [
            part.column(name).to_numpy(zero_copy_only=False)
            if name in part.schema.names
            else np.zeros(part.num_rows, np.bool_)
            for part in parts
        ]
    )
