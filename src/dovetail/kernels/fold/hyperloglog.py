"""About how many distinct values, from a few thousand small numbers (HyperLogLog, Flajolet et al. 2007).

A value's code names one of `REGISTERS` registers by its lower bits; its rank is the place of the first bit that is
set among the others. A register keeps the largest rank it saw, so sketches of parts make that of the whole. Only
registers that saw something are kept, as rows (register, rank) of the group.

The standard error is 1.04 / sqrt(4096), 1.6 %; small numbers are counted by the registers that are still empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

REGISTER_BITS = 12
REGISTERS = 1 << REGISTER_BITS


def registers_of(codes: U64) -> npt.NDArray[np.int16]:
    return (codes & np.uint64(REGISTERS - 1)).astype(np.int16)


def ranks_of(codes: U64) -> npt.NDArray[np.int8]:
    """1 for a code whose upper bits begin with a one, 2 for 01 ..."""
    ranks: npt.NDArray[np.int8] = _ranks(codes)
    return ranks


def estimate_distinct(ranks: npt.NDArray[np.int8], groups: I64, group_count: int) -> I64:
    """Of each group, from the ranks of its registers; registers that are not among them are empty."""
    powers = np.bincount(groups, weights=np.ldexp(1.0, -ranks.astype(np.int32)), minlength=group_count)
    used = np.bincount(groups, minlength=group_count)
    empty = REGISTERS - used
    bias = 0.7213 / (1 + 1.079 / REGISTERS)
    raw = bias * REGISTERS * REGISTERS / (powers + empty)
    with np.errstate(divide="ignore"):
        by_empty = REGISTERS * np.log(REGISTERS / np.maximum(empty, 1))
    is_small = (raw <= 2.5 * REGISTERS) & (empty > 0)
    return np.rint(np.where(is_small, by_empty, raw)).astype(np.int64)


@njit(cache=True)
def _ranks(codes: Any) -> Any:
    ranks = np.empty(len(codes), np.int8)
    for row in range(len(codes)):
        rank = 1
        code = codes[row]
        while rank <= 52 and not code >> np.uint64(63):
            code <<= np.uint64(1)
            rank += 1
        ranks[row] = rank
    return ranks
