"""The figures of a batch, from its state and what its tasks reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from dovetail.engine.admission.query_limits import found_by_users
from dovetail.engine.bad_rows import BadRowTotals
from dovetail.engine.explain.served_queries import ServedQueries
from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.engine.once_per import OncePer
from dovetail.engine.progress.figures import (
    BatchFigures,
    Durations,
    GroupFigures,
    MatchEstimate,
    QueryFigures,
    ShippedFigures,
    ShippedStore,
    StepFigures,
    StoreFigures,
    StreamEstimates,
    StreamFigures,
    UnitFigures,
    Volume,
)
from dovetail.engine.state import EngineState
from dovetail.plan.query_limits import Found
from dovetail.plan.shared_plan import SharedPlan
from dovetail.runtime.entries import Entries
from dovetail.runtime.report import GroupCount, StepCount, TaskReport, UnitWork
from dovetail.stats.catalog import MATCH_KINDS, StatsCatalog
from dovetail.store.bucket_file import BucketMeta, by_store
from dovetail.store.manifest import ResultPart


def take_figures(
    done: FinishedBatch,
    results: Iterable[ResultPart],
    idle: frozenset[str],
    durations: Durations,
    finished_at: float,
    stats: StatsCatalog,
) -> BatchFigures:
    """`results` are the files that were committed, `idle` the streams that held nobody back; `stats` are those after
    the batch.
    """
    state, plan, report = done.after, done.plan, done.report
    served = ServedQueries(plan, {record.id: record.name for record in state.registry.records})
    watermarks = state.watermark_us_by_stream(done.streams)
    return BatchFigures(
        batch=state.batch,
        finished_at=finished_at,
        durations=durations,
        epoch=plan.epoch,
        seconds_by_part=report.seconds_by_part,
        streams=_of_streams(done, watermarks, idle),
        queries=_of_queries(state, results, found_by_users(report.found, plan.groups)),
        stores=_of_stores(state, plan, served),
        groups=_of_groups(state, plan, report.groups, served),
        count_steps=partial(_of_steps, plan, report.steps, served),
        units=_of_units(plan, report.work),
        shipped=_of_shipping(plan, report),
        stream_estimates=tuple(
            StreamEstimates(name, stats.batch_rows(name), stats.rows_per_s(name), stats.late_share(name))
            for name in done.streams
        ),
        match_estimates=_of_matches(stats),
        written=_volume(done.written),
    )


def _of_streams(done: FinishedBatch, watermarks: Mapping[str, int], idle: frozenset[str]) -> tuple[StreamFigures, ...]:
    rows, late_rows, bad_rows, kept_bad_rows = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for count in done.report.streams:
        rows[count.stream] += count.rows
        late_rows[count.stream] += count.late_rows
    for bad in done.report.bad_rows:
        bad_rows[bad.stream] += bad.rows
    for file in done.after.bad_files:
        kept_bad_rows[file.stream] += file.rows
    return tuple(
        StreamFigures(
            name,
            rows[name],
            late_rows[name],
            watermarks.get(name),
            name in idle,
            bad_rows=bad_rows[name],
            bad=done.after.bad_row_totals.get(name, BadRowTotals()),
            kept_bad_rows=kept_bad_rows[name],
        )
        for name in done.streams
    )


def _of_queries(state: EngineState, results: Iterable[ResultPart], found: Mapping[str, Found]) -> Entries[QueryFigures]:
    """Those that run or stand still, and those that ended with this batch."""
    rows: Counter[str] = Counter()
    for result in results:
        rows[result.query] += result.rows
    return Entries(
        QueryFigures,
        (
            QueryFigures(
                record.name,
                record.state.value,
                rows[record.id],
                record.total_rows,
                found.get(record.id, Found()).ms,
            )
            for record in state.registry.records
            if record.dropped_batch is None or record.dropped_batch == state.batch
        ),
    )


def _of_stores(state: EngineState, plan: SharedPlan, served: ServedQueries) -> tuple[StoreFigures, ...]:
    users_by_store: dict[str, list[str]] = {}
    for store_id, leg in plan.asked_legs():
        users_by_store.setdefault(store_id, []).append(leg.query)
    buckets_by_store = by_store(state.buckets)
    return tuple(
        StoreFigures(
            store.id,
            _volume(buckets_by_store.get(store.id, [])),
            store.retention.is_bounded,
            tuple(served.names(users_by_store.get(store.id, []))),
        )
        for store in plan.stores
    )


def _of_groups(
    state: EngineState, plan: SharedPlan, counts: list[GroupCount], served: ServedQueries
) -> tuple[GroupFigures, ...]:
    buckets_by_table = by_store(state.buckets)
    return tuple(
        GroupFigures(
            group.id,
            sum(count.folded_rows for count in counts if count.group == group.id),
            _volume([meta for table in group.tables for meta in buckets_by_table.get(table.id, [])]),
            group.pane is not None,
            state.closed_us_by_group.get(group.id),
            tuple(served.names([group.id])),
        )
        for group in plan.groups
    )


def _texts_of_steps(plan: SharedPlan) -> dict[str, str]:
    return {node.id: f"{tree.start}: {node.step}" for tree in plan.query_trees for node in tree.walk()}


_step_texts = OncePer(_texts_of_steps)


def _of_steps(plan: SharedPlan, counts: Entries[StepCount], served: ServedQueries) -> tuple[StepFigures, ...]:
    """Those that find pairs, and of the others those that were counted."""
    counts_by_node: dict[str, list[StepCount]] = {}
    for count in counts:
        counts_by_node.setdefault(count.node, []).append(count)
    texts = _step_texts.of(plan)
    pairs = [(tree, node) for tree in plan.trees for node in tree.walk()]
    others = [(tree, node) for tree in plan.query_trees[len(plan.trees) :] for node in tree.walk()]
    return tuple(
        StepFigures(
            node.id,
            node.member,
            texts[node.id],
            sum(count.probe_rows for count in counts_by_node.get(node.id, [])),
            round(sum(count.wanted_rows / count.copies for count in counts_by_node.get(node.id, []))),
            sum(count.matched_rows for count in counts_by_node.get(node.id, [])),
            tuple(served.names(leg.query for leg in node.legs)),
        )
        for tree, node in (*pairs, *(found for found in others if found[1].id in counts_by_node))
    )


def _of_units(plan: SharedPlan, work: list[UnitWork]) -> tuple[UnitFigures, ...]:
    by_partition: list[list[UnitWork]] = [[] for _ in range(plan.placement.partition_count)]
    for each in work:
        by_partition[each.partition].append(each)
    return tuple(
        UnitFigures(
            partition,
            sum(each.probed_rows for each in own),
            sum(each.pairs for each in own),
            sum(each.seconds for each in own),
        )
        for partition, own in enumerate(by_partition)
    )


def _of_shipping(plan: SharedPlan, report: TaskReport) -> ShippedFigures:
    first = min(report.shuffled, key=lambda each: each.stage, default=None)
    sent_bytes = sum(count.message_bytes for count in report.shipped) if first is None else first.written_bytes
    by_partition = [0] * plan.placement.partition_count
    counts = by_store(report.shipped)
    for count in report.shipped:
        by_partition[count.partition] += count.rows
    return ShippedFigures(
        input_rows=sum(count.home_rows for count in report.shipped),
        size_bytes=sent_bytes if plan.ships_rows else 0,
        exchanged_bytes=sum(each.written_bytes for each in report.shuffled) if plan.shipping else None,
        rows_by_partition=tuple(by_partition),
        stores=tuple(
            ShippedStore(
                store.id,
                sum(count.rows for count in counts.get(store.id, [])),
                sum(count.home_rows for count in counts.get(store.id, [])),
            )
            for store in plan.stores
            if plan.ships(store)
        ),
    )


def _of_matches(stats: StatsCatalog) -> tuple[MatchEstimate, ...]:
    edges = {figure.subject[0] for figure in stats.observed.tallies if figure.kind in MATCH_KINDS}
    return tuple(MatchEstimate(edge, stats.match(edge)) for edge in sorted(edges))


def _volume(metas: Sequence[BucketMeta]) -> Volume:
    return Volume(sum(meta.rows for meta in metas), sum(meta.size_bytes for meta in metas), len(metas))
