"""What a finished batch says of its units: how full they are, and which rows a new number of them made it rewrite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from dovetail.engine.batch.choose_merges import choose_merges
from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.engine.planning.scale_units import UnitLoad
from dovetail.optimizer.pricing.estimate_work import CodeWork, IndexWork
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import StorePlan
from dovetail.runtime.report import UnitWork
from dovetail.stats.catalog import StatsCatalog
from dovetail.store.bucket_file import BucketMeta


def memory_load(
    plan: SharedPlan, stats: StatsCatalog, buckets: Iterable[BucketMeta], max_bytes: float
) -> tuple[float, float]:
    """Of a unit on average and of the fullest; 1 if it keeps `max_bytes`.

    Any unit can read any row: what it keeps are the rows that are its own to read, by placement and routing.
    """
    bytes_by_store: Counter[str] = Counter()
    for meta in buckets:
        bytes_by_store[meta.store] += meta.size_bytes
    mean = bytes_by_store.total() / plan.placement.partition_count
    of_stores = {store.id: _imbalance(store, plan, stats) for store in plan.stores}
    hottest = sum(size * of_stores.get(store, 1.0) for store, size in bytes_by_store.items())
    return mean / max_bytes, hottest / plan.placement.partition_count / max_bytes


def _imbalance(store: StorePlan, plan: SharedPlan, stats: StatsCatalog) -> float:
    """The fullest unit's rows over the mean's, by the index that spreads them worst; 1 where keys are not known."""
    found = [1.0]
    for index in store.indexes:
        rows = np.array(stats.rows_by_group(store.id, index.id))
        if not index.keys or not rows.sum():
            continue
        shares = rows / rows.sum()
        heavy = stats.heavy_share_by_code(store.id, index.id)
        for code, share in heavy.items():
            shares[code >> (65 - len(shares).bit_length())] -= share
        work = IndexWork(np.maximum(shares, 0.0), {code: CodeWork(share, share, 0.0) for code, share in heavy.items()})
        found.append(work.imbalance(plan.routing(store.id, index), plan.placement_of(store.id, index)))
    return max(found)


def time_load(
    work: Iterable[UnitWork], units: int, batch_s: float, interval_s: float, *, is_one_task: bool
) -> tuple[float, float]:
    """On average and as it is; 1 if a batch takes the whole interval until the next.

    A batch waits for its slowest unit. What it would take if all of them were as slow as the mean is what more units
    could change; the rest is a matter of how work is spread.
    """
    seconds: Counter[int] = Counter()
    for each in work:
        seconds[each.partition] += each.seconds  # type: ignore[assignment] # a counter of seconds
    waited_s = 0.0 if is_one_task else max(seconds.values(), default=0.0) - seconds.total() / units
    return max(batch_s - waited_s, 0.0) / interval_s, batch_s / interval_s


def rewritten_rows(batch: FinishedBatch, fanout: int) -> int:
    """Stored rows that the batch wrote again and would not have written again with another number of units (D3).

    Merges go on whatever that number is; what they take together follows from the buckets, and from the queries of this
    batch, which may be others than before. A bucket of earlier batches that is neither merged nor filled in was moved.
    """
    expected = {
        tuple(meta.key for meta in merge.buckets) for merge in choose_merges(batch.plan, batch.before.buckets, fanout)
    }
    merged = sum(merge.merged.rows for merge in batch.report.merges if tuple(merge.replaced) not in expected)
    filled = {fill.store for fill in batch.plan.fills}
    old = (meta for meta in batch.written if meta.lower_batch < batch.after.batch and meta.store not in filled)
    return merged + sum(meta.rows for meta in old)


def measured_load(
    batch: FinishedBatch,
    stats: StatsCatalog,
    *,
    max_bytes: float,
    batch_s: float,
    interval_s: float | None,
    is_one_task: bool,
) -> UnitLoad:
    """`interval_s` of None: batches follow one another without a pause, so none of them is too long."""
    units = batch.plan.placement.partition_count
    memory, hottest_memory = memory_load(batch.plan, stats, batch.after.buckets, max_bytes)
    if interval_s is None:
        return UnitLoad(units, memory, None, hottest_memory)
    time, hottest_time = time_load(batch.report.work, units, batch_s, interval_s, is_one_task=is_one_task)
    return UnitLoad(units, memory, time, hottest_memory, hottest_time)
