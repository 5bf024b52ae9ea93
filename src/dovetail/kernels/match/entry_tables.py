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

from dovetail.kernels.addresses import address_of
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
        return address_of(self.codes), address_of(self.rows), self.begin, self.end


@dataclass(frozen=True)
class BundledEntries:
    """Entries of several buckets, ascending by code: a line of code, reference and, if rows have one, event time.

    References name a row by the place of its bucket in the bundle. What belongs to an entry lies together: in a large
    bundle each look elsewhere waits for memory.
    """

    lines: U64
    directory: Directory

    @property
    def codes(self) -> U64:
        return self.lines[:, 0]

    @property
    def refs(self) -> U64:
        return self.lines[:, 1]

    @property
    def times(self) -> I64 | None:
        return self.lines[:, 2].view(np.int64) if self.lines.shape[1] > 2 else None

    @property
    def bytes(self) -> int:
        return self.lines.nbytes + self.directory.begins.nbytes


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
    known = [each.times for each in members if each.times is not None]
    lines = np.empty((len(codes), 3 if len(known) == len(members) else 2), np.uint64)
    lines[:, 0] = codes
    lines[:, 1] = np.concatenate([each.refs for each in members])[order]
    if len(known) == len(members):
        lines[:, 2] = np.concatenate(known)[order].view(np.uint64)
    return BundledEntries(lines, make_directory(codes))


@dataclass(frozen=True)
class Bundle:
    """Entries by address: `rows` of one bucket, or `refs`. `times` are by row or, with `refs`, by entry.

    An entry's code begins `stride` bytes after the one before, and so do references and times by entry.
    `buckets` are its buckets by number; one that is no more has the number of none, which is behind the last.
    """

    codes: int
    rows: int
    refs: int
    times: int
    stride: int
    begin: int
    end: int
    directory: int
    shift: int
    time_range: tuple[int, int]
    buckets: tuple[int, ...]


def bundle_of_bucket(entries: TableEntries, bucket: int, times: int, time_range: tuple[int, int]) -> Bundle:
    """`times`: where the event times of its rows begin."""
    codes, rows, begin, end = entries.address
    directory, shift = address_of(entries.directory.begins), entries.directory.shift
    return Bundle(codes, rows, 0, times, 8, begin, end, directory, shift, time_range, (bucket,))


def bundle_of_buckets(entries: BundledEntries, buckets: tuple[int, ...], time_range: tuple[int, int]) -> Bundle:
    codes, (count, width) = address_of(entries.lines), entries.lines.shape
    directory, shift = address_of(entries.directory.begins), entries.directory.shift
    return Bundle(codes, 0, codes + 8, codes + 16, 8 * width, 0, count, directory, shift, time_range, buckets)


class TableArrays(NamedTuple):
    """`[table, bundle]`: where things lie, and the buckets as `members[member_begin : member_end]`.

    Of each table how many bundles it has, and which is the first of this batch.
    """

    codes: Any
    rows: Any
    refs: Any
    times: Any
    stride: Any
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
    places = np.zeros((max(len(tables), 1), max(width, 1), 9), np.uint64)
    spans = np.zeros((max(len(tables), 1), max(width, 1), 4), np.int64)
    members: list[int] = []
    for number, (earlier, current) in enumerate(tables):
        for at, each in enumerate((*earlier, *current)):
            places[number, at] = (
                each.codes,
                each.rows,
                each.refs,
                each.times,
                each.stride,
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
