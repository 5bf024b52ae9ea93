"""A few rows of a store with the key group of each use: how the rows of one use fall on those of another (S3)."""

from __future__ import annotations

import base64

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import charged
from dovetail.kernels.match.hash_keys import group_of_codes
from dovetail.kernels.select.select_rows import spread_rows
from dovetail.plan.placement import use_of
from dovetail.plan.shipping import placed_indexes
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.report import KeyGroups
from dovetail.runtime.source.build_index import RowKeys, row_keys
from dovetail.runtime.source.wanted_rows import RowSelector, StoreRows
from dovetail.stats.key_group_sample import NO_GROUP, SAMPLED_ROWS_A_BATCH, Groups


def sample_key_groups(task: BatchTask, selector: RowSelector, store: StorePlan, rows: StoreRows) -> list[KeyGroups]:
    """Of rows that are kept; nothing where no key places them, or nobody asks."""
    indexes = placed_indexes(store) if task.samples_key_groups else ()
    if not indexes or rows.length == 0:
        return []
    chosen = spread_rows(rows.length, SAMPLED_ROWS_A_BATCH)
    groups_by_use: dict[str, Groups] = {}
    for index in indexes:
        groups = _groups(task, selector, store, index, rows, chosen)
        _, use = use_of(store.id, index)
        known = groups_by_use.get(use, groups)
        # An index with an order leaves out rows in which that is NULL; another one by the same key may have them.
        groups_by_use[use] = np.where(known == NO_GROUP, groups, known)
    packed = base64.b64encode(np.stack(list(groups_by_use.values())).astype("<i2").tobytes()).decode()
    return [KeyGroups(store.id, rows.length, len(chosen), list(groups_by_use), packed)]


def _groups(
    task: BatchTask,
    selector: RowSelector,
    store: StorePlan,
    index: IndexPlan,
    rows: StoreRows,
    chosen: npt.NDArray[np.int64],
) -> Groups:
    """`NO_GROUP` where the index does not have the row."""

    def keys_of(kept: StoreRows) -> RowKeys:
        return row_keys(index, lambda column: kept.columns[column.name], kept.length, task.timezone, store.event_time)

    taken = pa.array(chosen)
    try:
        keys = row_keys(
            index, lambda column: rows.columns[column.name].take(taken), len(chosen), task.timezone, store.event_time
        )
    except Exception as error:  # noqa: BLE001 - the selector finds out whose fault it is
        charged(error)
        found = selector.guarded(store, index, rows.take(chosen), keys_of)
    else:
        found = keys, None
    groups = np.full(len(chosen), NO_GROUP, np.int16)
    if found is not None:
        keys, wanted = found
        of_rows = group_of_codes(keys.codes, task.plan.placement.group_count)
        if keys.valid_mask is not None:
            of_rows[~keys.valid_mask] = NO_GROUP
        groups[slice(None) if wanted is None else wanted] = of_rows
    return groups
