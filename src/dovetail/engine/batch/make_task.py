"""What every task of a batch is told: the plan, what is stored, and what there is to do besides the queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dovetail.engine.admission.query_limits import batch_limits
from dovetail.engine.batch.choose_merges import choose_merges
from dovetail.engine.batch.progress import was_small
from dovetail.engine.options import EngineOptions
from dovetail.engine.planning.fill import choose_chunks
from dovetail.engine.planning.planner import Planned
from dovetail.engine.state import EngineState
from dovetail.plan.sampled_join import SampledJoin
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask

JOINS_SAMPLED_A_BATCH = 4


def make_task(
    root: Path,
    options: EngineOptions,
    before: EngineState,
    planned: Planned,
    streams: Mapping[str, Stream],
    sampled_joins: tuple[SampledJoin, ...],
    fill_rows: int,
    last_progress: Mapping[str, Any] | None,
) -> BatchTask:
    """For the batch that `before` is the state of; `last_progress` is that of the batch before it, if it ran here.

    Of `sampled_joins` each has its turn, `fill_rows` is how many rows fills may go on by.
    """
    plan = planned.plan
    return BatchTask(
        root=str(root),
        batch=before.batch,
        plan=plan,
        streams=tuple(streams[name] for name in sorted(streams)),
        buckets=before.buckets,
        late_before_us=tuple(before.watermark_us_by_stream(streams).items()),
        merges=choose_merges(plan, before.buckets, options.merge_fanout),
        timezone=options.timezone,
        max_pairs=options.max_pairs,
        piece_bytes=options.piece_bytes,
        is_small=last_progress is not None and was_small(last_progress, options.small_batch_rows),
        sampled_joins=_in_turn(sampled_joins, before.batch),
        fill_chunks=choose_chunks(before.fills, before.kept_from, before.buckets, fill_rows),
        decided_before_us=tuple(before.decided_us_by_stream.items()),
        limits=batch_limits(before.registry.running, planned.decisions.intermediates, options, plan.groups),
        closed_us=tuple(before.closed_us_by_group.items()),
        samples_key_groups=options.places_by_samples,
    )


def _in_turn(joins: tuple[SampledJoin, ...], batch: int) -> tuple[SampledJoin, ...]:
    """A few of them, so that no batch pays for all; after some batches each had its turn."""
    turns = -(-len(joins) // JOINS_SAMPLED_A_BATCH)
    return tuple(join for place, join in enumerate(joins) if place % turns == batch % turns)
