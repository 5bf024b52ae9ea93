"""Estimates of joins that no hop runs, from slices of the stores' indexes: a task reads a few thousand entries."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.core.errors import EvaluationError, charged
from dovetail.kernels.match.estimate_match import IndexEntries, estimate_match, slice_index, slice_rule
from dovetail.kernels.match.hash_keys import CodeRange
from dovetail.plan.sampled_join import SampledJoin
from dovetail.plan.store_plan import IndexPlan
from dovetail.query.expression import columns_of
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.probe.route_entries import RangeEntries
from dovetail.runtime.probe.snapshot import StoreSnapshot
from dovetail.runtime.report import MatchSample

_ALL_ENTRIES = RangeEntries(CodeRange(0, 1 << 64))


def sample_joins(task: BatchTask, partition: int, snapshots: Mapping[str, StoreSnapshot]) -> list[MatchSample]:
    """The joins that this partition was asked for; one whose keys fail on some row has no answer."""
    found = []
    for place, join in enumerate(task.sampled_joins):
        if place % task.plan.placement.partition_count != partition:
            continue
        if join.a_store not in snapshots or join.b_store not in snapshots:
            continue
        try:
            found.append(_sample(join, snapshots[join.a_store], snapshots[join.b_store]))
        except Exception as error:  # noqa: BLE001 - a sample decides nothing
            charged(error)
    return found


def _sample(join: SampledJoin, a_store: StoreSnapshot, b_store: StoreSnapshot) -> MatchSample:
    a_buckets = _buckets(a_store, join.a_index, is_timed=join.is_timed)
    b_buckets = _buckets(b_store, join.b_index, is_timed=join.is_timed)
    rule = slice_rule(a_buckets, b_buckets)
    estimate = estimate_match(slice_index(a_buckets, rule), slice_index(b_buckets, rule), join.lower_us, join.upper_us)
    return MatchSample(join.edge, estimate.matches, estimate.pairs, estimate.relative_error)


def _buckets(snapshot: StoreSnapshot, index: IndexPlan, *, is_timed: bool) -> list[IndexEntries]:
    """All live buckets that have the key's columns; older ones may have been written before anybody wanted those."""
    needed = {column.name for key in index.keys for column in columns_of(key)}
    found = []
    for ordinal, meta in enumerate(snapshot.metas):
        if needed <= set(meta.columns):
            if not snapshot.has_whole_index(ordinal, index):
                raise EvaluationError("a key that fails on some row says nothing of how often rows meet")
            entries = snapshot.entries(ordinal, index, _ALL_ENTRIES)
            times = snapshot.bucket_times(ordinal) if is_timed else None
            found.append(IndexEntries(entries.codes, entries.rows, times, meta.home_rows))
    return found
