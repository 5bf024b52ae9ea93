"""What every task of a batch is told: the plan, what is stored, and what there is to do besides the queries."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dovetail.core.sync import Syncing
from dovetail.engine.admission.query_limits import batch_limits
from dovetail.engine.batch.choose_merges import choose_merges
from dovetail.engine.batch.next_bad_rows import room_by_stream
from dovetail.engine.observe.when_to_tally import is_tallied
from dovetail.engine.options import EngineOptions
from dovetail.engine.planning.fill import choose_chunks
from dovetail.engine.planning.plans import BatchPlan
from dovetail.engine.progress.figures import BatchFigures
from dovetail.engine.state import EngineState
from dovetail.plan.sampled_join import SampledJoin
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask

JOINS_SAMPLED_A_BATCH = 4
SMALL_WORK_S = 1.5
"""Of all hops together. Stages cost a tenth of a second each, and what a task does whatever its rows is done in each
of them; two cores save half of the rest."""


def make_task(
    root: Path,
    options: EngineOptions,
    batch_plan: BatchPlan,
    sampled_joins: tuple[SampledJoin, ...],
    fill_rows: int,
    last: BatchFigures | None,
    batch_time_s: float,
) -> BatchTask:
    """Of `sampled_joins` each has its turn, `fill_rows` is how many rows fills may go on by; `last` are the figures of
    the batch before, if it ran here. `batch_time_s` is the batch's own time, by the clock.
    """
    before, planned, streams = batch_plan.before, batch_plan.planned, batch_plan.streams
    plan = planned.plan
    return BatchTask(
        root=str(root),
        batch=before.batch,
        plan=plan,
        streams=tuple(streams[name] for name in sorted(streams)),
        buckets=before.buckets,
        late_before_us=tuple(before.watermark_us_by_stream(streams).items()),
        merges=choose_merges(plan, before.buckets, options.tuning.merge_fanout),
        timezone=options.timezone,
        max_pairs=options.tuning.max_pairs,
        piece_bytes=options.tuning.piece_bytes,
        own_file_bytes=options.tuning.own_file_bytes,
        is_small=last is not None and _was_small(last, options.tuning.small_batch_rows),
        sampled_joins=_in_turn(sampled_joins, before),
        fill_chunks=choose_chunks(before.fills, before.kept_from, before.buckets, fill_rows),
        decided_before_us=tuple(before.decided_us_by_stream.items()),
        limits=batch_limits(before.registry.running, planned.decisions.intermediates, options.limits, plan.groups),
        closed_us=tuple(before.closed_us_by_group.items()),
        samples_key_groups=options.places_by_samples,
        syncing=Syncing.BEGUN if options.syncs else Syncing.NOT,
        last_time_us=_last_times_us(streams.values(), batch_time_s, options.timezone),
        bad_row_room=tuple(room_by_stream(before).items()),
        retried=tuple((file, before.batch) for file in before.bad_files if file.is_retried),
    )


def _last_times_us(streams: Iterable[Stream], batch_time_s: float, timezone: str) -> tuple[tuple[str, int], ...]:
    return tuple(
        (each.name, each.rules.last_time_us(batch_time_s, timezone, has_zone=each.has_time_zone))
        for each in streams
        if each.event_time is not None
    )


def _was_small(figures: BatchFigures, most_rows: int) -> bool:
    """Whether one task would have been done with the batch before several had shared it among them: few rows, and
    little work. With hundreds of queries a few rows are much work.
    """
    return figures.input_rows < most_rows and figures.hop_s < SMALL_WORK_S


def _in_turn(joins: tuple[SampledJoin, ...], before: EngineState) -> tuple[SampledJoin, ...]:
    """A few of them, so that no batch pays for all, where somebody looks at them; after some each had its turn."""
    if not is_tallied(before.observed, before.batch):
        return ()
    turns = -(-len(joins) // JOINS_SAMPLED_A_BATCH)
    return tuple(join for place, join in enumerate(joins) if place % turns == before.observed.tallied % turns)
