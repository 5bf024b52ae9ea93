"""Counts, smallest and largest values of groups of rows. NULLs are left out, NaN is above all other numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dovetail.kernels.buffers import fixed_values

I64 = npt.NDArray[np.int64]
LONG_TEXT_BYTES = 256
"""From there on copying texts costs more than putting them in order."""
Mask = npt.NDArray[np.bool_]


def fold_counts(counts: I64, groups: I64, group_count: int) -> I64:
    """The sum of each group's counts."""
    totals: I64 = _add(counts, groups, group_count)
    return totals


def count_rows(groups: I64, group_count: int) -> I64:
    return np.bincount(groups, minlength=group_count).astype(np.int64, copy=False)


def fold_extremes(values: pa.Array, groups: I64, group_count: int, *, largest: bool) -> pa.Array:
    """The smallest or largest value of each group; NULL where there is none. -0.0 is just below 0.0."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_decimal(kind):
        is_long = values.nbytes > LONG_TEXT_BYTES * len(values)
        return (_by_order if is_long else _by_arrow)(values, groups, group_count, largest=largest)
    is_floating = pa.types.is_floating(kind)
    ordered = ordered_floats(values) if is_floating else fixed_values(values).astype(np.int64, copy=False)
    valid = np.asarray(values.is_valid()) if values.null_count else np.ones(len(values), np.bool_)
    found, is_known = _extremes(ordered, valid, groups, group_count, largest)
    null_mask = None if is_known.all() else ~is_known
    if is_floating:
        return pa.array(_floats(found).astype(kind.to_pandas_dtype()), kind, mask=null_mask)
    if pa.types.is_boolean(kind):
        return pa.array(found != 0, mask=null_mask)
    if pa.types.is_date32(kind):
        return pa.array(found.astype(np.int32), mask=null_mask).view(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(found, mask=null_mask).view(kind)
    return pa.array(found.astype(kind.to_pandas_dtype()), kind, mask=null_mask)


def _by_arrow(values: pa.Array, groups: I64, group_count: int, *, largest: bool) -> pa.Array:
    function = "max" if largest else "min"
    table = pa.table({"group": groups, "value": values})
    # In this thread: what others work for a query would not be charged to it.
    found = table.group_by("group", use_threads=False).aggregate([("value", function)])
    place = np.full(group_count, -1, np.int64)
    place[np.asarray(found.column("group"))] = np.arange(found.num_rows)
    column = found.column(f"value_{function}").combine_chunks()
    return column.take(pa.array(place, mask=place < 0)).cast(values.type)


def _by_order(values: pa.Array, groups: I64, group_count: int, *, largest: bool) -> pa.Array:
    """Texts are compared where they are, and only those that are found are copied."""
    order = np.asarray(pc.sort_indices(values)).astype(np.int64)  # NULLs come last
    ascending = order[: len(values) - values.null_count]
    found = np.full(group_count, -1, np.int64)
    # Of several rows of a group the last one stays.
    in_turn = ascending if largest else ascending[::-1]
    found[groups[in_turn]] = in_turn
    return values.take(pa.array(found, mask=found < 0))


def ordered_floats(values: pa.Array) -> I64:
    """Integers in the order of the floats, NaN last.

    -0.0 is below 0.0 here. SQL takes them for equal, and Spark answers the one that it meets first; this way it is
    the same one in any order, and the only one there is where all are alike.
    """
    plain = np.asarray(pc.fill_null(values, 0.0)).astype(np.float64)
    plain[np.isnan(plain)] = np.nan
    bits = plain.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


def _floats(ordered: I64) -> npt.NDArray[np.float64]:
    return (ordered ^ ((ordered >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))).view(np.float64)


@njit(cache=True)
def _add(counts: Any, groups: Any, group_count: int) -> Any:
    totals = np.zeros(group_count, np.int64)
    for row in range(len(groups)):
        totals[groups[row]] += counts[row]
    return totals


@njit(cache=True)
def _extremes(values: Any, valid: Any, groups: Any, group_count: int, largest: bool) -> tuple[Any, Any]:
    found = np.zeros(group_count, np.int64)
    is_known = np.zeros(group_count, np.bool_)
    for row in range(len(values)):
        if valid[row]:
            group, value = groups[row], values[row]
            if not is_known[group] or (value > found[group] if largest else value < found[group]):
                found[group] = value
                is_known[group] = True
    return found, is_known
