"""Entries of indexes by address, for compiled code: by table and bucket where codes and rows lie, and which count.

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
    def address(self) -> tuple[int, int, int, int, int, int]:
        return (
            self.codes.ctypes.data,
            self.rows.ctypes.data,
            self.begin,
            self.end,
            self.directory.begins.ctypes.data,
            self.directory.shift,
        )


NO_ENTRIES = (0, 0, 0, 0, 0, 63)


class TableArrays(NamedTuple):
    """`[table, bucket]`; a bucket that has no entries in a table begins where it ends."""

    codes: Any
    rows: Any
    begin: Any
    end: Any
    directory: Any
    shift: Any


def table_arrays(addresses: Sequence[Sequence[tuple[int, ...]]], buckets: int) -> TableArrays:
    """By table and bucket the addresses of entries; tables may have fewer buckets than the widest."""
    whole = np.zeros((max(len(addresses), 1), max(buckets, 1), 6), np.uint64)
    for table, of_buckets in enumerate(addresses):
        if of_buckets:
            whole[table, : len(of_buckets)] = of_buckets
    codes, rows, begin, end, directory, shift = (np.ascontiguousarray(whole[:, :, k]) for k in range(6))
    return TableArrays(codes, rows, begin, end, directory, shift)
