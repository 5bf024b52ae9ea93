"""An index over rows: their codes (and order values) in ascending order, and which row each belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.kernels.match.order_values import order_values
from dovetail.kernels.match.sort_codes import sort_by_code_and_order, sort_codes
from dovetail.kernels.select.select_rows import Mask
from dovetail.plan.store_plan import EVENT_TIME, ROW, IndexPlan
from dovetail.query.expression import Column, Expression
from dovetail.query.types import TIMESTAMP
from dovetail.runtime.source.key_codes import ColumnOf, key_codes
from dovetail.store.bucket_file import BucketIndex


@dataclass(frozen=True)
class RowKeys:
    """By row the code of its key and, of an index with an order, its order value.

    `valid_mask` tells the rows without a NULL in either; None: all.
    """

    codes: npt.NDArray[np.uint64]
    valid_mask: Mask | None
    orders: npt.NDArray[np.int64] | None = None


def row_keys(index: IndexPlan, column_of: ColumnOf, length: int, timezone: str, event_time: str | None) -> RowKeys:
    keys = key_codes(index, column_of, length, timezone)
    codes, valid_mask = keys.codes, keys.valid_mask
    if index.order is None:
        return RowKeys(codes, valid_mask)
    found = order_values(order_column(index.order, column_of, length, timezone, event_time))
    if found.valid_mask is not None:
        valid_mask = found.valid_mask if valid_mask is None else valid_mask & found.valid_mask
    return RowKeys(codes, valid_mask, found.values)


def build_index(
    index: IndexPlan, column_of: ColumnOf, length: int, timezone: str, event_time: str | None
) -> BucketIndex:
    """Rows by ascending code of their key, then by their order; rows with a NULL in either are left out."""
    keys = row_keys(index, column_of, length, timezone, event_time)
    if keys.orders is None:
        return _by_code(keys.codes, keys.valid_mask)
    rows = np.arange(length) if keys.valid_mask is None else np.flatnonzero(keys.valid_mask)
    orders = keys.orders[rows]
    order = sort_by_code_and_order(keys.codes[rows], orders)
    return BucketIndex(keys.codes[rows][order], rows[order].astype(np.uint32), orders[order])


def with_null_key(index: IndexPlan, column_of: ColumnOf, length: int, timezone: str) -> Mask:
    """The rows that have a NULL in their key, and so no partner."""
    valid_mask = key_codes(index, column_of, length, timezone).valid_mask
    return np.zeros(length, np.bool_) if valid_mask is None else ~valid_mask


def order_column(
    order: Expression, column_of: ColumnOf, length: int, timezone: str, event_time: str | None
) -> pa.Array:
    """The values that rows are ordered by."""
    if order != EVENT_TIME:
        return evaluate(order, column_of, length, timezone=timezone)
    if event_time is None:
        raise ValueError("an index by event time of a store that has none")
    return column_of(Column(ROW, event_time, TIMESTAMP))


def _by_code(codes: npt.NDArray[np.uint64], valid_mask: Mask | None) -> BucketIndex:
    if valid_mask is None:
        codes, order = sort_codes(codes)
        return BucketIndex(codes, order.astype(np.uint32))
    valid_idx = np.flatnonzero(valid_mask)
    codes, order = sort_codes(codes[valid_idx])
    return BucketIndex(codes, valid_idx[order].astype(np.uint32))
