"""What happened in a batch, as a JSON-able dictionary shaped like Spark's StreamingQueryProgress."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dovetail.engine.explain.names_of_takers import NamesOfTakers
from dovetail.engine.state import EngineState
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream
from dovetail.runtime.report import GroupCount, ShippedCount, StepCount, StreamCount, TaskReport, UnitWork
from dovetail.stats.catalog import MATCH_KINDS, StatsCatalog
from dovetail.stats.estimate import Estimate
from dovetail.store.bucket_file import BucketMeta, by_store

SMALL_WORK_S = 0.7
"""Of all hops together. Stages cost a tenth of a second each; two cores save half of the work."""


def make_progress(
    state: EngineState,
    plan: SharedPlan,
    streams: Mapping[str, Stream],
    report: TaskReport,
    duration_ms: dict[str, float],
    finished_at: float,
    stats: StatsCatalog,
    idle: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    total_ms = sum(duration_ms.values())
    input_rows = sum(count.rows for count in report.streams)
    rows_by_query: dict[str, int] = {}
    for result in report.results:
        rows_by_query[result.query] = rows_by_query.get(result.query, 0) + result.rows
    name_by_query = {record.id: record.name for record in state.registry.records}
    names = NamesOfTakers(plan, name_by_query)
    return {
        "batchId": state.batch,
        "timestamp": _iso(finished_at * 1e6),
        "numInputRows": input_rows,
        "processedRowsPerSecond": input_rows / total_ms * 1000 if total_ms else 0.0,
        "batchDuration": total_ms,
        "durationMs": duration_ms,
        "taskSeconds": report.seconds_by_part,
        "streams": _stream_entries(streams, report.streams, state.watermark_us_by_stream(streams), idle),
        "queries": [
            {
                "name": record.name,
                "state": record.state.value,
                "numOutputRows": rows_by_query.get(record.id, 0),
                "totalOutputRows": record.total_rows,
            }
            for record in state.registry.records
            if record.dropped_batch is None or record.dropped_batch == state.batch
        ],
        "stores": _store_entries(state, plan, names),
        "groups": _group_entries(state, plan, report.groups, names),
        "hops": _hop_entries(plan, report.steps, names),
        "work": _work_entry(plan, report.work),
        "shipped": _shipped_entry(plan, report),
        "statistics": _statistics_entry(streams, stats),
    }


def written_entry(written: list[BucketMeta]) -> dict[str, Any]:
    """What the batch's rows became."""
    return {
        "numRows": sum(meta.rows for meta in written),
        "numBytes": sum(meta.size_bytes for meta in written),
        "numBuckets": len(written),
    }


def was_small(progress: Mapping[str, Any], most_rows: int) -> bool:
    """Whether one task would have been done with the batch before several had shared it among them: few rows, and
    little work. With hundreds of queries a few rows are much work.
    """
    work_s = sum(seconds for part, seconds in progress["taskSeconds"].items() if part.startswith("hop "))
    return bool(progress["numInputRows"] < most_rows and work_s < SMALL_WORK_S)


def _stream_entries(
    streams: Mapping[str, Stream], counts: list[StreamCount], watermarks: Mapping[str, int], idle: frozenset[str]
) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "numInputRows": sum(count.rows for count in counts if count.stream == name),
            "lateRows": sum(count.late_rows for count in counts if count.stream == name),
            "watermark": _iso(watermarks[name]) if name in watermarks else None,
            "isIdle": name in idle,
        }
        for name in streams
    ]


def _store_entries(state: EngineState, plan: SharedPlan, names: NamesOfTakers) -> list[dict[str, Any]]:
    users_by_store: dict[str, list[str]] = {}
    for store_id, leg in plan.asked_legs():
        users_by_store.setdefault(store_id, []).append(leg.query)
    users = {store_id: set(names.of(queries)) for store_id, queries in users_by_store.items()}
    buckets_by_store = by_store(state.buckets)
    entries = []
    for store in plan.stores:
        buckets = buckets_by_store.get(store.id, [])
        entries.append(
            {
                "name": store.id,
                "numRows": sum(meta.rows for meta in buckets),
                "numBytes": sum(meta.size_bytes for meta in buckets),
                "numBuckets": len(buckets),
                "isBounded": store.retention.is_bounded,
                "queries": sorted(users.get(store.id, set())),
            }
        )
    return entries


def _group_entries(
    state: EngineState, plan: SharedPlan, counts: list[GroupCount], names: NamesOfTakers
) -> list[dict[str, Any]]:
    """What an aggregation keeps: rows of partial groups, in all its tables."""
    entries = []
    for group in plan.groups:
        tables = {table.id for table in group.tables}
        buckets = [meta for meta in state.buckets if meta.store in tables]
        closed_us = state.closed_us_by_group.get(group.id)
        entries.append(
            {
                "name": group.id,
                "numFoldedRows": sum(count.folded_rows for count in counts if count.group == group.id),
                "numRows": sum(meta.rows for meta in buckets),
                "numBytes": sum(meta.size_bytes for meta in buckets),
                "numBuckets": len(buckets),
                "isBounded": group.pane is not None,
                "closedUntil": None if closed_us is None else _iso(closed_us),
                "queries": names.of([group.id]),
            }
        )
    return entries


def _hop_entries(plan: SharedPlan, steps: list[StepCount], names: NamesOfTakers) -> list[dict[str, Any]]:
    entries = []
    steps_by_node: dict[str, list[StepCount]] = {}
    for step in steps:
        steps_by_node.setdefault(step.node, []).append(step)
    for tree in plan.trees:
        for node in tree.walk():
            counted = steps_by_node.get(node.id, [])
            entries.append(
                {
                    "hop": node.member,
                    "step": f"{tree.start}: {node.step}",
                    "probeRows": sum(step.probe_rows for step in counted),
                    "matchedRows": sum(step.matched_rows for step in counted),
                    "queries": names.of(leg.query for leg in node.legs),
                }
            )
    return entries


def _work_entry(plan: SharedPlan, work: list[UnitWork]) -> dict[str, Any]:
    """By partition, over all hops; a partition's work is the rows that probe in it plus the pairs that they find."""
    partitions = [
        {
            "partition": partition,
            "probedRows": sum(each.probed_rows for each in work if each.partition == partition),
            "pairs": sum(each.pairs for each in work if each.partition == partition),
            "seconds": sum(each.seconds for each in work if each.partition == partition),
        }
        for partition in range(plan.placement.partition_count)
    ]
    amounts = [entry["probedRows"] + entry["pairs"] for entry in partitions]
    mean = sum(amounts) / len(amounts)
    return {"partitions": partitions, "slowestOverMean": max(amounts) / mean if mean else 1.0}


def _shipped_entry(plan: SharedPlan, report: TaskReport) -> dict[str, Any]:
    """Rows that were sent to the partitions that keep them: every copy counts, those too that stay on one machine.

    `inputRows` counts each row once. Bytes are those that Spark's first exchange wrote or, where everything ran in one
    task, those of the messages.
    """
    first = min(report.shuffled, key=lambda each: each.stage, default=None)
    is_shipped = plan.ships_rows
    sent_bytes = sum(count.message_bytes for count in report.shipped) if first is None else first.written_bytes
    by_partition = [0] * plan.placement.partition_count
    counts: dict[str, list[ShippedCount]] = {}
    for count in report.shipped:
        by_partition[count.partition] += count.rows
        counts.setdefault(count.store, []).append(count)
    return {
        "rows": sum(by_partition),
        "inputRows": sum(count.home_rows for count in report.shipped),
        "bytes": sent_bytes if is_shipped else 0,
        "exchangedBytes": sum(each.written_bytes for each in report.shuffled),
        "rowsByPartition": by_partition,
        "stores": [
            {
                "name": store.id,
                "rows": sum(count.rows for count in counts.get(store.id, [])),
                "inputRows": sum(count.home_rows for count in counts.get(store.id, [])),
            }
            for store in plan.stores
            if plan.ships(store)
        ],
    }


def _statistics_entry(streams: Mapping[str, Stream], stats: StatsCatalog) -> dict[str, Any]:
    """What planners will use of streams and joins, folded over batches; selections and keys are in EXPLAIN."""
    edges = {figure.subject[0] for figure in stats.observed.tallies if figure.kind in MATCH_KINDS}
    return {
        "streams": [
            {
                "name": name,
                "batchRows": _figure(stats.batch_rows(name)),
                "rowsPerSecond": _figure(stats.rows_per_s(name)),
                "lateShare": _figure(stats.late_share(name)),
            }
            for name in streams
        ],
        "matches": [{"edge": edge, "probability": _figure(stats.match(edge))} for edge in sorted(edges)],
    }


def _figure(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "origin": estimate.origin.value, "relativeError": estimate.relative_error}


def _iso(micros: float) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat().replace("+00:00", "Z")
