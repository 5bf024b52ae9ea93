"""The state after a batch, from the state before it and what its tasks reported. Pure: commits nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from dovetail.engine.admission.query_limits import HeldTo, found_by_users, nodes_of, passed_limits
from dovetail.engine.batch.idle_streams import carry_along
from dovetail.engine.batch.next_bad_rows import next_bad_rows
from dovetail.engine.batch.next_groups import closed_windows, kept_groups, with_users
from dovetail.engine.control.coverage import StoreHistory
from dovetail.engine.control.registry import Registry, quarantined
from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.engine.observe.observe_batch import learn
from dovetail.engine.observe.when_to_tally import is_tallied
from dovetail.engine.planning.fill import advance_fills
from dovetail.engine.state import EngineState
from dovetail.plan.affected_queries import queries_of_selection
from dovetail.plan.fill import FillChunk
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import StorePlan
from dovetail.plan.watermarks import moved_watermarks
from dovetail.query.stream import Stream
from dovetail.runtime.entries import Entries
from dovetail.runtime.report import STATISTICS, StepCount, TaskReport, newest_times
from dovetail.store.bucket_file import BucketMeta, by_store
from dovetail.store.commit import Draft
from dovetail.store.manifest import Arrival, ResultPart

LEFT_OUT = (
    "was given up by a task that ran again and then found nothing wrong, so that some answers of the batch are missing"
    "\n  instead: create the query again; if it happens again, ask for less or raise its limits"
)


def next_state(
    before: EngineState,
    plan: SharedPlan,
    streams: Mapping[str, Stream],
    report: TaskReport,
    written: Sequence[BucketMeta],
    fill_chunks: tuple[FillChunk, ...] = (),
    idle: frozenset[str] = frozenset(),
    held_to: HeldTo | None = None,
) -> tuple[EngineState, Draft]:
    """`before` already has the batch's number, epoch, registry and fills; `fill_chunks` is how far these went.

    `idle` are the streams that hold nobody back any more.
    """
    held_to = held_to or HeldTo()
    stopped = passed_limits(found_by_users(report.found, plan.groups), held_to.found, before.batch)
    broken = with_users({failure.query: failure.error for failure in report.failures}, plan.groups)
    left_out = with_users(dict.fromkeys(report.left_out, LEFT_OUT), plan.groups)
    failed = left_out | stopped | broken
    results = tuple(result for result in report.results if result.query not in failed)
    registry = _with_results(before.registry, _rows_by_query(results), failed, before.batch)
    state = _moved_in_time(replace(before, registry=registry), plan, streams, report, idle)
    buckets = _merged(before.buckets, written, report)
    lost = _lost_intermediates(plan, set(failed))
    kept, dead, histories = _keep_and_expire(state, plan, streams, buckets, set(broken), lost)
    fills, histories = advance_fills(
        before.fills, fill_chunks, before.kept_from, before.buckets, kept, histories, set(failed)
    )
    # What was answered before the storage was looked at is right and stays.
    too_large = {} if held_to.stored is None else held_to.stored.passed(replace(state, buckets=kept))
    registry = _with_results(registry, {}, too_large, before.batch)
    kept_from = {store: since for store, since in before.kept_from.items() if store not in lost}
    bad = next_bad_rows(before, streams, report)
    state = replace(state, bad_files=bad.files, bad_row_totals=bad.totals)
    state = replace(state, registry=registry, buckets=kept, histories=histories, fills=fills, kept_from=kept_from)
    with report.timed(STATISTICS):
        counted = _without_steps(report, nodes_of(plan, set(stopped)) if stopped else set())
        finished = FinishedBatch(before, state, plan, streams, counted, tuple(written))
        observed = learn(before.observed, finished, tallies=is_tallied(before.observed, before.batch))
        state = replace(state, observed=observed)
    new_files = (
        *dict.fromkeys(meta.path for meta in (*written, *(merge.merged for merge in report.merges))),
        *(file.path for file in bad.files if file.batch == before.batch),
    )
    gone = (*dead, *_replaced(before.buckets, report))
    dead_paths = (*_dead_files(gone, kept), *_void_answers(report, failed), *bad.dead_paths)
    arrival = Arrival(retried=bad.retried, unread=bad.unread)
    return state, Draft(state.to_stored(), results, dead_paths, new_files, arrival)


def _moved_in_time(
    before: EngineState, plan: SharedPlan, streams: Mapping[str, Stream], report: TaskReport, idle: frozenset[str]
) -> EngineState:
    """How far streams are, up to where rows are decided, and which windows are closed."""
    newest = newest_times(report.streams)
    earlier = (before.decided_us_by_stream, before.watermark_us_by_stream(streams))
    decided_us = moved_watermarks(earlier, streams.values(), newest)
    return replace(
        before,
        max_time_us_by_stream=carry_along(_max_times(before.max_time_us_by_stream, newest), idle, streams),
        decided_us_by_stream=decided_us,
        closed_us_by_group=closed_windows(before, plan.groups, decided_us),
    )


def _dead_files(gone: Iterable[BucketMeta], kept: Iterable[BucketMeta]) -> list[str]:
    """A file goes with the last of its buckets."""
    living = {meta.path for meta in kept}
    return sorted({meta.path for meta in gone} - living)


def _void_answers(report: TaskReport, failed: Mapping[str, str]) -> Iterator[str]:
    """Files with nothing but answers of queries that failed."""
    named = {result.path for result in report.results if result.query not in failed}
    yield from sorted({result.path for result in report.results} - named)


def _rows_by_query(results: Iterable[ResultPart]) -> Counter[str]:
    rows: Counter[str] = Counter()
    for result in results:
        rows[result.query] += result.rows
    return rows


def _with_results(registry: Registry, rows_by_query: Mapping[str, int], failed: dict[str, str], batch: int) -> Registry:
    changed = []
    for record in registry.running:
        if record.id in failed:
            changed.append(quarantined(record, failed[record.id], batch))
        elif record.id in rows_by_query:
            changed.append(replace(record, total_rows=record.total_rows + rows_by_query[record.id]))
    return registry.updated(changed) if changed else registry


def _lost_intermediates(plan: SharedPlan, failed: set[str]) -> set[str]:
    """Kept joins that lack rows of this batch. Nobody misses them yet, for users see earlier batches only; so the join
    is given up whole, and if it is still wanted it begins anew.
    """
    emits = [emit for tree in plan.trees for node in tree.walk() for emit in node.emits] if failed else []
    return {emit.into for emit in emits if emit.into is not None and emit.query in failed}


def _without_steps(report: TaskReport, nodes: set[str]) -> TaskReport:
    """Where a query was stopped pairs were left out: planners shall not learn from such counts."""
    if not nodes:
        return report
    return replace(report, steps=Entries(StepCount, (count for count in report.steps if count.node not in nodes)))


def _max_times(before: Mapping[str, int], newest: Mapping[str, int]) -> dict[str, int]:
    return {**before, **{stream: max(time_us, before.get(stream, time_us)) for stream, time_us in newest.items()}}


def _merged(earlier: tuple[BucketMeta, ...], written: Sequence[BucketMeta], report: TaskReport) -> list[BucketMeta]:
    replaced = {meta.key for meta in _replaced(earlier, report)}
    buckets = [meta for meta in earlier if meta.key not in replaced]
    buckets += [merge.merged for merge in report.merges]
    buckets += written
    return sorted(buckets, key=_place)


def _replaced(earlier: Iterable[BucketMeta], report: TaskReport) -> list[BucketMeta]:
    keys = {key for merge in report.merges for key in merge.replaced}
    return [meta for meta in earlier if meta.key in keys] if keys else []


def _place(meta: BucketMeta) -> tuple[str, int, tuple[str, int]]:
    return meta.store, meta.lower_batch, meta.place


def _keep_and_expire(
    state: EngineState,
    plan: SharedPlan,
    streams: Mapping[str, Stream],
    buckets: list[BucketMeta],
    broken: set[str],
    lost: set[str],
) -> tuple[tuple[BucketMeta, ...], list[BucketMeta], dict[str, StoreHistory]]:
    """Whole buckets go once no future row can meet any of their rows; a store goes with its last query.

    `broken` queries failed on some row; `lost` stores lack rows of this batch.
    """
    watermarks = state.watermark_us_by_stream(streams)
    deciding = plan.deciding_stores
    kept: list[BucketMeta] = []
    dead: list[BucketMeta] = []
    histories: dict[str, StoreHistory] = {}
    planned = [store for store in plan.stores if store.id not in lost]
    buckets_by_store = by_store(buckets)
    for store in planned:
        own = buckets_by_store.get(store.id, [])
        # Rows stay until they are decided, so by no watermark that the tasks have not seen.
        passed = dict(state.decided_us_by_stream) if store.id in deciding else watermarks
        gone = [meta for meta in own if store.retention.is_dead(meta.max_time_us, passed)]
        living = [meta for meta in own if meta not in gone]
        kept += living
        dead += gone
        history = state.histories.get(store.id, StoreHistory())
        history = history.continued(_decided(plan, store, broken), state.batch).with_expired(gone)
        if store.id not in state.fills:
            # What a fill adds is older than the store, and serves only whom all segments serve.
            history = history.since(min((meta.lower_batch for meta in living), default=state.batch))
        histories[store.id] = history
    of_groups = {meta.key for meta in kept_groups(plan.groups, buckets, state.closed_us_by_group)}
    kept += [meta for meta in buckets if meta.key in of_groups]
    dead += [meta for meta in buckets if meta.store not in histories and meta.key not in of_groups]
    return tuple(sorted(kept, key=_place)), dead, histories


def _decided(plan: SharedPlan, store: StorePlan, broken: set[str]) -> StorePlan:
    """The store without selections that only broken queries ask: this batch's rows may lack their bits."""
    if not broken:
        return store
    asked_by = {selection: queries_of_selection(plan, store.id, selection) for selection in store.selections}
    undecided = {selection for selection, queries in asked_by.items() if queries and queries <= broken}
    return replace(store, selections=tuple(s for s in store.selections if s not in undecided))
