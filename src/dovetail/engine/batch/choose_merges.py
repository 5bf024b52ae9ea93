"""Which buckets to merge in a batch: neighbours of one level and layout, once there are enough of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dovetail.plan.shared_plan import SharedPlan
from dovetail.runtime.batch_task import MergeTask
from dovetail.store.bucket_file import BucketMeta, by_store

MERGE_FANOUT = 4
MAX_MERGED_ROWS = 16_000_000
# A string column holds at most 2 GiB in one Arrow array.
MAX_MERGED_BYTES = 1 << 30


def choose_merges(plan: SharedPlan, buckets: Iterable[BucketMeta], fanout: int = MERGE_FANOUT) -> tuple[MergeTask, ...]:
    """At most one merge per store and batch, spread over the partitions."""
    first_batches = {batch for _, batch in plan.complete_from_by_query}
    first_batches |= {fill.before_batch for fill in plan.fills}
    first_batches |= {user.first_batch for group in plan.groups for user in group.users}
    # A fill knows by bucket and row how far it is: what it has still to read stays as it is.
    read_before = {fill.driver: fill.before_batch for fill in sorted(plan.fills, key=lambda fill: fill.before_batch)}
    metas_by_store = by_store(meta for meta in buckets if meta.lower_batch >= read_before.get(meta.store, 0))
    merges: list[MergeTask] = []
    stores = {store.id for store in plan.stores} | {table.id for group in plan.groups for table in group.tables}
    for store in sorted(stores & metas_by_store.keys()):
        run = _mergeable_run(metas_by_store[store], first_batches, fanout)
        if run:
            merges.append(MergeTask(store, tuple(run), len(merges) % plan.placement.partition_count))
    return tuple(merges)


def _mergeable_run(buckets: list[BucketMeta], first_batches: set[int], fanout: int) -> list[BucketMeta]:
    """The lowest-level run of at least `fanout` neighbours that may become one bucket.

    Runs are as long as they get: a batch of many source tasks must not add more buckets than a merge takes away.
    """
    best: list[BucketMeta] = []
    for run in _runs(sorted(buckets, key=lambda meta: (meta.lower_batch, meta.split)), first_batches):
        if len(run) >= fanout and (not best or run[0].level <= best[0].level):
            best = run
    return best


def _runs(buckets: Iterable[BucketMeta], first_batches: set[int]) -> Iterator[list[BucketMeta]]:
    """The longest runs of neighbours that may become one bucket."""
    run: list[BucketMeta] = []
    rows = size_bytes = 0
    for meta in buckets:
        rows, size_bytes = rows + meta.rows, size_bytes + meta.size_bytes
        fits = rows <= MAX_MERGED_ROWS and size_bytes <= MAX_MERGED_BYTES
        if run and not (fits and _may_follow(run, meta, first_batches)):
            yield run
            run, rows, size_bytes = [], meta.rows, meta.size_bytes
        run.append(meta)
    if run:
        yield run


def _may_follow(run: list[BucketMeta], meta: BucketMeta, first_batches: set[int]) -> bool:
    if run[-1].level != meta.level or run[-1].layout != meta.layout:
        return False
    # A query that may only use rows from some batch on tells rows by bucket: no bucket may straddle it.
    return not any(run[0].lower_batch < batch <= meta.upper_batch for batch in first_batches)
