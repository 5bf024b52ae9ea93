"""Codes in ascending order and where each came from, faster than argsort.

Sorting values is several times faster than sorting positions, so a code gives up its low bits for its position,
the values are sorted, and the positions read back. Codes that agree in all the bits that were left, but not in the
rest, may come out in the wrong order; that is rare and mended by a stable sort of the nearly sorted codes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
CODE_BITS = 64


def sort_codes(codes: U64) -> tuple[U64, I64]:
    """Equal codes keep their order.

    >>> codes, order = sort_codes(np.array([9 << 60, 1 << 60, 5 << 60], np.uint64))
    >>> order.tolist()
    [1, 2, 0]
    """
    position_bits = np.uint64(max(len(codes) - 1, 1).bit_length())
    position_mask = np.uint64((1 << int(position_bits)) - 1)
    packed = (codes & ~position_mask) | np.arange(len(codes), dtype=np.uint64)
    packed.sort()
    order = (packed & position_mask).astype(np.int64)
    ordered = codes[order]
    if len(codes) > 1 and (ordered[1:] < ordered[:-1]).any():
        mended = np.argsort(ordered, kind="stable")
        ordered, order = ordered[mended], order[mended]
    return ordered, order


def sort_by_code_and_order(codes: U64, orders: I64) -> I64:
    """Where each came from, ascending by code and within a code by order value; what is equal keeps its order.

    >>> sort_by_code_and_order(np.array([7, 3, 7], np.uint64), np.array([2, 9, 1])).tolist()
    [1, 2, 0]
    """
    by_order = sort_orders(orders)
    ordered = codes[by_order]
    if len(codes) == 0 or (ordered[0] == ordered).all():
        return by_order
    return by_order[sort_codes(ordered)[1]]


def sort_orders(orders: I64) -> I64:
    """Where each came from, ascending; equal ones keep their order, so that every machine sorts alike.

    >>> sort_orders(np.array([5, -3, 5])).tolist()
    [1, 0, 2]
    """
    if len(orders) == 0:
        return np.zeros(0, np.int64)
    lowest, highest = int(orders.min()), int(orders.max())
    position_bits = max(len(orders) - 1, 1).bit_length()
    if (highest - lowest).bit_length() + position_bits > CODE_BITS:
        return np.argsort(orders, kind="stable")
    # There is room for the positions below the values.
    packed = (orders.view(np.uint64) - np.uint64(lowest % (1 << CODE_BITS))) << np.uint64(position_bits)
    packed |= np.arange(len(orders), dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64((1 << position_bits) - 1)).astype(np.int64)
