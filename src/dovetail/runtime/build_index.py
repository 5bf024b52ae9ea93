"""An index over rows: their codes (and order values) in ascending order, and which row each belongs to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.evaluate import evaluate
from dovetail.kernels.order_values import order_values
from dovetail.kernels.sort_codes import sort_by_code_and_order, sort_codes
from dovetail.plan.store_plan import EVENT_TIME, ROW, IndexPlan
from dovetail.query.expression import Column, Expression
from dovetail.query.types import TIMESTAMP
from dovetail.runtime.key_codes import ColumnOf, key_codes
from dovetail.store.bucket_file import BucketIndex


def build_index(
    index: IndexPlan, column_of: ColumnOf, length: int, timezone: str, event_time: str | None
) -> BucketIndex:
    """Rows by ascending code of their key, then by their order; rows with a NULL in either are left out."""
    keys = key_codes(index, column_of, length, timezone)
    codes, valid_mask = keys.codes, keys.valid_mask
    if index.order is None:
        return _by_code(codes, valid_mask)
    found = order_values(order_column(index.order, column_of, length, timezone, event_time))
    if found.valid_mask is not None:
        valid_mask = found.valid_mask if valid_mask is None else valid_mask & found.valid_mask
    rows = np.arange(length) if valid_mask is None else np.flatnonzero(valid_mask)
    orders = found.values[rows]
    order = sort_by_code_and_order(codes[rows], orders)
    return BucketIndex(codes[rows][order], rows[order].astype(np.uint32), orders[order])


def order_column(
    order: Expression, column_of: ColumnOf, length: int, timezone: str, event_time: str | None
) -> pa.Array:
    """The values that rows are ordered by."""
    if order != EVENT_TIME:
        return evaluate(order, column_of, length, timezone=timezone)
    if event_time is None:
        raise ValueError("an index by event time of a store that has none")
    return column_of(Column(ROW, event_time, TIMESTAMP))


def _by_code(codes: npt.NDArray[np.uint64], valid_mask: npt.NDArray[np.bool_] | None) -> BucketIndex:
    if valid_mask is None:
        codes, order = sort_codes(codes)
        return BucketIndex(codes, order.astype(np.uint32))
    valid_idx = np.flatnonzero(valid_mask)
    codes, order = sort_codes(codes[valid_idx])
    return BucketIndex(codes, valid_idx[order].astype(np.uint32))
