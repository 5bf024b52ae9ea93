"""Entries of indexes by address, for compiled code: by table and bundle where codes and rows lie, and which count.

A *bundle* are entries that are searched at once: those of one bucket where they lie, or those of several put together.

A *directory* tells for the top bits of a code where such codes begin, so that a code is found with one look and a few
steps, whatever the number of entries. Arrays lie in maps of their own: whoever has the addresses must hold the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.match.sort_codes import sort_codes

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]
CODES_A_SLOT = 2
MOST_BITS = 24


@dataclass(frozen=True)
class Directory:
    """`begins[top]` is the first of the ascending codes whose top bits are `top` or more; `shift` leaves the top."""

    begins: U32
    shift: int


def make_directory(codes: U64) -> Directory:
    bits = min(max((len(codes) // CODES_A_SLOT).bit_length(), 1), MOST_BITS)
    begins = np.empty((1 << bits) + 1, np.uint32)
    _fill_directory(np.require(codes, requirements=["C", "W"]), np.uint64(64 - bits), begins)
    return Directory(begins, 64 - bits)


@njit(cache=True)
def _fill_directory(codes: Any, shift: Any, begins: Any) -> None:
    at = np.uint64(0)
    for i in range(len(codes)):
        top = codes[np.uint64(i)] >> shift
        while at <= top:
            begins[at] = i
            at += np.uint64(1)
    while at < np.uint64(len(begins)):
        begins[at] = len(codes)
        at += np.uint64(1)


@dataclass(frozen=True)
class TableEntries:
    """Entries [begin, end) of ascending `codes`, each with its row; the directory is of all of them."""

    codes: U64
    rows: U32
    begin: int
    end: int
    directory: Directory

    @cached_property
    def address(self) -> tuple[int, int, int, int]:
        """Where codes and rows begin, and which count."""
        return self.codes.ctypes.data, self.rows.ctypes.data, self.begin, self.end


@dataclass(frozen=True)
class BundledEntries:
    """Entries of several buckets, ascending by code: `refs` name a row by the place of its bucket in the bundle.

    `times` are the rows' event times; None without.
    """

    codes: U64
    refs: U64
    times: I64 | None
    directory: Directory

    @property
    def bytes(self) -> int:
        arrays = (self.codes, self.refs, self.directory.begins, *(() if self.times is None else (self.times,)))
        return sum(each.nbytes for each in arrays)


BYTES_AN_ENTRY = 28
"""What an entry of a bundle takes at most: code, reference, time and two slots of the directory."""


@dataclass(frozen=True)
class EntriesOfMember:
    """What a bucket, or a bundle, brings into a larger bundle: `refs` have the places that its buckets have there."""

    codes: U64
    refs: U64
    times: I64 | None


def bundle_entries(members: Sequence[EntriesOfMember]) -> BundledEntries:
    """All of them in the order of the codes."""
    codes, order = sort_codes(np.concatenate([each.codes for each in members]))
    refs = np.concatenate([each.refs for each in members])[order]
    known = [each.times for each in members if each.times is not None]
    times = np.concatenate(known)[order] if len(known) == len(members) else None
    return BundledEntries(codes, refs, times, make_directory(codes))


@dataclass(frozen=True)
class Bundle:
    """Entries by address: `rows` of one bucket, or `refs`. `times` are by row or, with `refs`, by entry.

    `buckets` are its buckets by number; one that is no more has the number of none, which is behind the last.
    """

    codes: int
    rows: int
    refs: int
    times: int
    begin: int
    end: int
    directory: int
    shift: int
    time_range: tuple[int, int]
    buckets: tuple[int, ...]


def bundle_of_bucket(entries: TableEntries, bucket: int, times: int, time_range: tuple[int, int]) -> Bundle:
    """`times`: where the event times of its rows begin."""
    directory = entries.directory
    begins = directory.begins.ctypes.data
    return Bundle(
        entries.address[0],
        entries.address[1],
        0,
        times,
        entries.begin,
        entries.end,
        begins,
        directory.shift,
        time_range,
        (bucket,),
    )


def bundle_of_buckets(entries: BundledEntries, buckets: tuple[int, ...], time_range: tuple[int, int]) -> Bundle:
    times = 0 if entries.times is None else entries.times.ctypes.data
    directory = entries.directory
    begins = directory.begins.ctypes.data
    codes, refs, count = entries.codes.ctypes.data, entries.refs.ctypes.data, len(entries.codes)
    return Bundle(codes, 0, refs, times, 0, count, begins, directory.shift, time_range, buckets)


class TableArrays(NamedTuple):
    """`[table, bundle]`: where things lie, and the buckets as `members[member_begin : member_end]`.

    Of each table how many bundles it has, and which is the first of this batch.
    """

    codes: Any
    rows: Any
    refs: Any
    times: Any
    begin: Any
    end: Any
    directory: Any
    shift: Any
    first_us: Any
    last_us: Any
    member_begin: Any
    member_end: Any
    members: Any
    count: Any
    current_from: Any


def table_arrays(tables: Sequence[tuple[Sequence[Bundle], Sequence[Bundle]]]) -> TableArrays:
    """Of each table the bundles from before this batch, and those of this batch."""
    width = max((len(earlier) + len(current) for earlier, current in tables), default=0)
    places = np.zeros((max(len(tables), 1), max(width, 1), 8), np.uint64)
    spans = np.zeros((max(len(tables), 1), max(width, 1), 4), np.int64)
    members: list[int] = []
    for number, (earlier, current) in enumerate(tables):
        for at, each in enumerate((*earlier, *current)):
            places[number, at] = (
                each.codes,
                each.rows,
                each.refs,
                each.times,
                each.begin,
                each.end,
                each.directory,
                each.shift,
            )
            spans[number, at] = (*each.time_range, len(members), len(members) + len(each.buckets))
            members += each.buckets
    columns = [np.ascontiguousarray(places[:, :, k]) for k in range(places.shape[2])]
    columns += [np.ascontiguousarray(spans[:, :, k]) for k in range(spans.shape[2])]
    columns += [
        np.array(members or [0], np.uint64),
        np.array([len(earlier) + len(current) for earlier, current in tables] or [0], np.int64),
        np.array([len(earlier) for earlier, _ in tables] or [0], np.int64),
    ]
    return TableArrays(*columns)
