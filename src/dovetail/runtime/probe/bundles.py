"""Buckets of earlier batches that are searched as one: their entries, put together in memory as more buckets come.

    buckets   0  1  2  3  4  5  6  7  8  9 10
    bundles   [------- 0 to 7 --------]  8  9 10    then   [------- 0 to 7 --------] [-- 8 to 11 -]

A row that looks for partners searches every bundle once, so that hundreds of buckets cost little more than ten. An
entry is put together anew a few times in its life, whatever the number of batches. Bundles are a cache beside the
files, as far as there is room in memory: a process that has none yet makes them of the buckets, and buckets that found
no room, or are large, are searched where they lie. A bucket is known by its name and checksum. Nobody wants the rows of
one that is no more, and a bundle without living buckets is forgotten.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dovetail.kernels.match.entry_tables import (
    BYTES_AN_ENTRY,
    BundledEntries,
    EntriesOfMember,
    TableEntries,
    bundle_entries,
)
from dovetail.runtime.probe.snapshot import BucketIdentity, StoreSnapshot

U64 = npt.NDArray[np.uint64]
FANOUT = 2
"""So many neighbours come together: to search one bundle less saves more than to put an entry together once more."""
LARGE_ENTRIES = 1 << 18
"""A bucket with more is searched where it lies: a search in it serves as many entries as one in a bundle would."""
MOST_BYTES = min(1 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (8 * (os.cpu_count() or 1)))
"""Of a session, in one process: there may be one for every core."""
FORGOTTEN_AFTER = 16
"""A table that nobody asked for in so many batches will not be asked for: the plan changed."""
MOST_ROOTS = 4
_REF_BITS = np.uint64(32)
_ROW_MASK = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class _Kept:
    """A bundle: its buckets by the places that its references have."""

    level: int
    buckets: tuple[BucketIdentity, ...]
    entries: BundledEntries


@dataclass(frozen=True)
class _Unit:
    """What is searched at once: bundles and buckets, by ordinal, that are one bundle or shall be one.

    The first living bucket puts it in order. Without a level it grows no more.
    """

    first: int
    level: int | None
    parts: tuple[_Kept | int, ...]
    buckets: int
    entries: int


@dataclass(frozen=True)
class Covering:
    """Each bucket once, by ordinal: those that are alone; bundles with their buckets and the times of their rows."""

    alone: tuple[int, ...]
    bundled: tuple[tuple[BundledEntries, tuple[int, ...], tuple[int, int]], ...]


class Bundles:
    """Those of one session in this process, by table: an index of a store, or some entries of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Hashable, tuple[_Kept, ...]] = {}
        self._used_in: dict[Hashable, int] = {}
        self._batch = 0
        self._bytes = 0

    @property
    def bytes(self) -> int:
        return self._bytes

    def next_batch(self) -> None:
        """Forget what nobody asks for any more."""
        with self._lock:
            self._batch += 1
            for table in [each for each, used in self._used_in.items() if self._batch - used > FORGOTTEN_AFTER]:
                self._keep(table, ())
                del self._used_in[table]

    def cover(
        self,
        snapshot: StoreSnapshot,
        table: Hashable,
        ordinals: Collection[int],
        entries_of: Callable[[int], TableEntries],
        nobody: int,
    ) -> Covering:
        """These buckets of earlier batches; `nobody` stands for buckets that are no more."""
        with self._lock:
            key = (snapshot.store.id, table)
            self._used_in[key] = self._batch
            units = self._units(self._kept.get(key, ()), snapshot, ordinals, entries_of)
            kept: list[_Kept] = []
            alone: list[int] = []
            room = MOST_BYTES - self._bytes
            for unit in _put_together(units, len(ordinals)):
                if len(unit.parts) > 1 and unit.entries * BYTES_AN_ENTRY <= room:
                    room -= unit.entries * BYTES_AN_ENTRY
                    kept.append(_bundle(unit, snapshot, entries_of))
                else:
                    kept += [part for part in unit.parts if isinstance(part, _Kept)]
                    alone += [part for part in unit.parts if isinstance(part, int)]
            self._keep(key, tuple(kept))
            return Covering(tuple(alone), tuple(_told(each, snapshot, nobody) for each in kept))

    def _units(
        self,
        kept: Sequence[_Kept],
        snapshot: StoreSnapshot,
        ordinals: Collection[int],
        entries_of: Callable[[int], TableEntries],
    ) -> list[_Unit]:
        """The bundles there are, and the buckets that none of them has, the oldest first."""
        units, rest = [], set(ordinals)
        ordinal_of = snapshot.facts.earlier
        for each in kept:
            living = [ordinal_of[bucket] for bucket in each.buckets if bucket in ordinal_of]
            if living:
                rest.difference_update(living)
                units.append(_Unit(min(living), each.level, (each,), len(living), len(each.entries.codes)))
        for ordinal in rest:
            entries = entries_of(ordinal)
            count = entries.end - entries.begin
            units.append(_Unit(ordinal, 0 if count < LARGE_ENTRIES else None, (ordinal,), 1, count))
        return sorted(units, key=lambda unit: unit.first)

    def _keep(self, table: Hashable, kept: tuple[_Kept, ...]) -> None:
        before = self._kept.pop(table, ())
        if kept:
            self._kept[table] = kept
        self._bytes += sum(each.entries.bytes for each in kept) - sum(each.entries.bytes for each in before)


def _put_together(units: Sequence[_Unit], buckets: int) -> list[_Unit]:
    """Neighbours of one level become one of the next, unless that were more than half of all buckets.

    The oldest bundle may hold as many buckets that are no more as it has.
    """
    done: list[_Unit] = []
    for each in units:
        done.append(each)
        while len(done) >= FANOUT and _is_one_level(done[-FANOUT:]):
            last = done[-FANOUT:]
            count = sum(unit.buckets for unit in last)
            if count > max(FANOUT, buckets // 2):
                break
            level = last[0].level or 0
            parts = tuple(part for unit in last for part in unit.parts)
            done[-FANOUT:] = [_Unit(last[0].first, level + 1, parts, count, sum(unit.entries for unit in last))]
    return done


def _is_one_level(units: Sequence[_Unit]) -> bool:
    return units[0].level is not None and all(unit.level == units[0].level for unit in units)


def _bundle(unit: _Unit, snapshot: StoreSnapshot, entries_of: Callable[[int], TableEntries]) -> _Kept:
    members: list[EntriesOfMember] = []
    buckets: list[BucketIdentity] = []
    for part in unit.parts:
        if isinstance(part, int):
            entries = entries_of(part)
            rows = entries.rows[entries.begin : entries.end]
            refs = rows.astype(np.uint64) | (np.uint64(len(buckets)) << _REF_BITS)
            times = snapshot.bucket_times(part)[rows] if snapshot.store.event_time is not None else None
            members.append(EntriesOfMember(entries.codes[entries.begin : entries.end], refs, times))
            buckets.append(snapshot.facts.identities[part])
        else:
            members.append(_living(part, snapshot, len(buckets)))
            buckets += [bucket for bucket in part.buckets if bucket in snapshot.facts.earlier]
    return _Kept(unit.level or 0, tuple(buckets), bundle_entries(members))


def _living(kept: _Kept, snapshot: StoreSnapshot, first_place: int) -> EntriesOfMember:
    """The entries of buckets that still are, with the places that these get, from `first_place` on."""
    is_living = np.array([bucket in snapshot.facts.earlier for bucket in kept.buckets], np.bool_)
    place = (first_place + np.cumsum(is_living) - 1).astype(np.uint64)
    entries = kept.entries
    old = entries.refs >> _REF_BITS
    refs = (entries.refs & _ROW_MASK) | (place[old] << _REF_BITS)
    if is_living.all():
        return EntriesOfMember(entries.codes, refs, entries.times)
    chosen = is_living[old]
    return EntriesOfMember(
        entries.codes[chosen], refs[chosen], None if entries.times is None else entries.times[chosen]
    )


def _told(kept: _Kept, snapshot: StoreSnapshot, nobody: int) -> tuple[BundledEntries, tuple[int, ...], tuple[int, int]]:
    ordinal_of = snapshot.facts.earlier
    buckets = tuple(ordinal_of.get(bucket, nobody) for bucket in kept.buckets)
    living = [snapshot.facts.time_ranges[bucket] for bucket in buckets if bucket != nobody]
    return kept.entries, buckets, (min(first for first, _ in living), max(last for _, last in living))


_bundles_by_root: dict[Path, Bundles] = {}


def bundles_of(root: Path) -> Bundles:
    """Of the session with this checkpoint; those of sessions that were not heard of for long are forgotten."""
    found = _bundles_by_root.pop(root, None) or Bundles()
    _bundles_by_root[root] = found
    for old in list(_bundles_by_root)[:-MOST_ROOTS]:
        _bundles_by_root.pop(old, None)
    return found
