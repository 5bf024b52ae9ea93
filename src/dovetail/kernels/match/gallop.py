"""Searches in ascending values that begin near the answer: double the step until past it, then halve the gap.

A search costs the logarithm of how far the answer is from `begin`, not of all values: what is asked in ascending order
is found in one forward pass.
"""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True)
def first_at_least(values: Any, begin: Any, end: Any, value: Any) -> Any:
    """Where from `begin` to below `end` the first value is that is not below `value`; `end` if there is none."""
    step = 1
    while begin + step < end and values[begin + step] < value:
        begin += step
        step += step
    end = min(begin + step, end)
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True)
def first_above(values: Any, begin: Any, end: Any, value: Any) -> Any:
    """The same for the first value above `value`."""
    step = 1
    while begin + step < end and values[begin + step] <= value:
        begin += step
        step += step
    end = min(begin + step, end)
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] <= value:
            begin = middle + 1
        else:
            end = middle
    return begin
