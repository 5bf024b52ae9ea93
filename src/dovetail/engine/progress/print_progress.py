"""The figures of a batch as users see them: a JSON-able dictionary shaped like Spark's StreamingQueryProgress.

Rates are by the clock unless they say that they are of event time: rows that came a second, over the last batches.
Nothing reads it back: whoever needs a figure has the record.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from dovetail.engine.explain.records.partitions import PlacementExplained
from dovetail.engine.progress.figures import (
    BatchFigures,
    GroupFigures,
    ShippedFigures,
    StepFigures,
    StreamFigures,
    Volume,
)
from dovetail.stats.estimate import Estimate

EARLIEST_US = -62_135_596_800_000_000
LATEST_US = 253_402_300_799_000_000


def print_progress(figures: BatchFigures) -> dict[str, Any]:
    durations, total_s = figures.durations, figures.durations.total_s
    return {
        "batchId": figures.batch,
        "timestamp": _iso(figures.finished_at * 1e6),
        "numInputRows": figures.input_rows,
        "inputRowsPerSecond": figures.input_rows_per_s,
        "processedRowsPerSecond": figures.input_rows / total_s if total_s else 0.0,
        "batchDuration": total_s * 1e3,
        "durationMs": {
            "plan": durations.plan_s * 1e3,
            "run": durations.run_s * 1e3,
            "commit": durations.commit_s * 1e3,
            **({"failedTries": durations.failed_s * 1e3} if durations.failed_s else {}),
        },
        "taskSeconds": dict(figures.seconds_by_part),
        "streams": [_stream(stream) for stream in figures.streams],
        "queries": [
            {
                "name": query.name,
                "state": query.state,
                "numOutputRows": query.output_rows,
                "totalOutputRows": query.total_rows,
                "workMs": query.work_ms,
            }
            for query in figures.queries
        ],
        "stores": [
            {
                "name": store.name,
                **_volume(store.kept),
                "isBounded": store.is_bounded,
                "queries": list(store.queries),
            }
            for store in figures.stores
        ],
        "groups": [_group(group) for group in figures.groups],
        "hops": [_step(step) for step in figures.steps],
        "work": _work(figures),
        "shipped": _shipped(figures.shipped),
        "statistics": _statistics(figures),
        "written": _volume(figures.written),
        "afterCommit": {"failures": figures.failures.count, "lastFailure": figures.failures.last},
        **({} if figures.placement is None else {"placement": _placement(figures.placement)}),
        **({} if figures.scale is None else {"units": figures.scale.to_json()}),
    }


def _stream(stream: StreamFigures) -> dict[str, Any]:
    return {
        "name": stream.name,
        "numInputRows": stream.input_rows,
        "inputRowsPerSecond": stream.rows_per_s,
        "lateRows": stream.late_rows,
        "watermark": None if stream.watermark_us is None else _iso(stream.watermark_us),
        "isIdle": stream.is_idle,
        "badRows": {
            "rows": stream.bad_rows,
            "total": stream.bad.rows,
            "kept": stream.kept_bad_rows,
            "overflowed": stream.bad.overflowed_rows,
            "retried": stream.bad.retried_rows,
            "byKind": dict(stream.bad.rows_by_kind),
            "last": stream.bad.last_reason,
        },
    }


def _group(group: GroupFigures) -> dict[str, Any]:
    return {
        "name": group.name,
        "numFoldedRows": group.folded_rows,
        **_volume(group.kept),
        "isBounded": group.is_bounded,
        "closedUntil": None if group.closed_us is None else _iso(group.closed_us),
        "queries": list(group.queries),
    }


def _step(step: StepFigures) -> dict[str, Any]:
    return {
        "hop": step.hop,
        "step": step.step,
        "probeRows": step.probe_rows,
        "matchedRows": step.matched_rows,
        "queries": list(step.queries),
    }


def _work(figures: BatchFigures) -> dict[str, Any]:
    return {
        "partitions": [
            {
                "partition": unit.partition,
                "probedRows": unit.probed_rows,
                "pairs": unit.pairs,
                "seconds": unit.seconds,
            }
            for unit in figures.units
        ],
        "slowestOverMean": figures.slowest_over_mean,
    }


def _shipped(shipped: ShippedFigures) -> dict[str, Any]:
    return {
        "rows": shipped.rows,
        "inputRows": shipped.input_rows,
        "bytes": shipped.size_bytes,
        "exchangedBytes": shipped.exchanged_bytes,
        "rowsByPartition": list(shipped.rows_by_partition),
        "stores": [{"name": store.name, "rows": store.rows, "inputRows": store.input_rows} for store in shipped.stores],
    }


def _statistics(figures: BatchFigures) -> dict[str, Any]:
    """What planners will use of streams and joins; selections and keys are in EXPLAIN."""
    return {
        "streams": [
            {
                "name": each.name,
                "batchRows": _estimate(each.batch_rows),
                "rowsPerEventSecond": _estimate(each.rows_per_s),
                "lateShare": _estimate(each.late_share),
            }
            for each in figures.stream_estimates
        ],
        "matches": [
            {"edge": each.edge, "probability": _estimate(each.probability)} for each in figures.match_estimates
        ],
    }


def _placement(told: PlacementExplained) -> dict[str, Any]:
    proving = {"batches": told.proven_batches, "of": told.needed_batches, "gain": told.expected_gain}
    return {
        "objectiveMs": told.objective_ms,
        "leastMs": told.least_ms,
        "expectedShippedRows": told.expected_shipped_rows,
        "shippedRows": told.shipped_rows,
        "imbalance": told.imbalance,
        "placedInBatch": told.placed_in_batch,
        "because": told.because,
        "timesSought": told.times_sought,
        "timesTaken": told.times_taken,
        "proving": None if told.proven_batches is None else proving,
        "overlaps": list(told.overlaps),
    }


def _volume(volume: Volume) -> dict[str, Any]:
    return {"numRows": volume.rows, "numBytes": volume.size_bytes, "numBuckets": volume.buckets}


def _estimate(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "origin": estimate.origin.value, "relativeError": estimate.relative_error}


def _iso(micros: float) -> str:
    if not EARLIEST_US <= micros <= LATEST_US:
        # Python's calendar ends with the year 9999, a timestamp does not.
        return f"{np.datetime64(int(micros), 'us')}Z"
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat().replace("+00:00", "Z")
