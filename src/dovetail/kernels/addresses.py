"""Addresses of arrays for compiled code, and the checked mode, in which every one that is loaded from is looked up.

Compiled code reads values that lie in many maps through raw addresses, which nothing checks: a wrong one gives wrong
rows, or ends the process. With DOVETAIL_CHECKED=1 in its environment a process notes of each address that is handed
out which bytes are behind it, as long as they are, and every load of a byte outside raises. That takes many times as
long, and is for tests.
"""

from __future__ import annotations

import bisect
import os
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

IS_CHECKED = os.environ.get("DOVETAIL_CHECKED") == "1"


class KnownBytes:
    """Ranges of bytes, counted: the same may be handed out often, and several may overlap."""

    def __init__(self) -> None:
        self._count_by_range: dict[tuple[int, int], int] = {}
        self._ranges: list[tuple[int, int]] = []

    def add(self, begin: int, end: int, owner: object) -> None:
        """Known as long as the owner is."""
        own = (begin, end)
        count = self._count_by_range.get(own, 0)
        self._count_by_range[own] = count + 1
        if count == 0:
            bisect.insort(self._ranges, own)
        weakref.finalize(owner, self._remove, own).atexit = False

    def _remove(self, own: tuple[int, int]) -> None:
        self._count_by_range[own] -= 1
        if self._count_by_range[own] == 0:
            del self._count_by_range[own]
            del self._ranges[bisect.bisect_left(self._ranges, own)]

    def has(self, begin: int, size: int) -> bool:
        """Whether all of these bytes lie in one of the ranges."""
        at = bisect.bisect_right(self._ranges, (begin, 1 << 64))
        return any(end >= begin + size for _, end in reversed(self._ranges[:at]))


known_bytes = KnownBytes()


def address_of(array: npt.NDArray[Any]) -> int:
    """Of its first value. Whoever has the address must hold the array."""
    address = int(array.ctypes.data)
    if IS_CHECKED and array.size:
        begin, end = np.lib.array_utils.byte_bounds(array)
        known_bytes.add(begin, end, _owner(array))
    return address


def address_of_buffer(column: pa.Array, place: int) -> int:
    """Of the first byte of one of its buffers. Whoever has the address must hold the column."""
    buffer = column.buffers()[place]
    if IS_CHECKED and buffer.size:
        known_bytes.add(buffer.address, buffer.address + buffer.size, column)
    return int(buffer.address)


def _owner(array: npt.NDArray[Any]) -> object:
    """Whose bytes they are: a view may be gone long before them. Others than Arrow know no more than an array."""
    owner: Any = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    below = owner.base.obj if isinstance(owner.base, memoryview) else owner.base
    return below if isinstance(below, pa.Buffer | pa.Array) else owner
