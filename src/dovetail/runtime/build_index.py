"""An index over rows: their codes in ascending order, and which row each code belongs to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from dovetail.kernels.evaluate import evaluate
from dovetail.kernels.hash_keys import hash_keys
from dovetail.kernels.sort_codes import sort_codes
from dovetail.plan.store_plan import IndexPlan
from dovetail.query.expression import Column
from dovetail.store.bucket_file import BucketIndex

ColumnOf = Callable[[Column], pa.Array]


def build_index(index: IndexPlan, column_of: ColumnOf, length: int, timezone: str) -> BucketIndex:
    """Rows by ascending code of their key; rows with a NULL in the key are left out."""
    keys = hash_keys([evaluate(key, column_of, length, timezone=timezone) for key in index.keys])
    if keys.valid_mask is None:
        codes, order = sort_codes(keys.codes)
        return BucketIndex(codes, order.astype(np.uint32))
    valid_idx = np.flatnonzero(keys.valid_mask)
    codes, order = sort_codes(keys.codes[valid_idx])
    return BucketIndex(codes, valid_idx[order].astype(np.uint32))
