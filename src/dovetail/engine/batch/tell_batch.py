"""A batch is told: planners learn from it, what is old is forgotten and removed, whoever waits or listens hears of it.

Each step is an attempt of its own. Nothing here decides an answer; what is missed is made up for by the next batch or
by a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from dovetail.engine.batch.aftermath import Aftermath
from dovetail.engine.batch.commit_batch import Committed
from dovetail.engine.batch.next_bad_rows import say_aloud
from dovetail.engine.batch.parts import Parts
from dovetail.engine.delivery.commit_news import CommitNews
from dovetail.engine.explain.describe.placement import describe_placement
from dovetail.engine.explain.records.partitions import PlacementExplained
from dovetail.engine.planning.elastic_units import UnitsNow
from dovetail.engine.progress.figures import BatchFigures
from dovetail.engine.progress.take_figures import take_figures
from dovetail.runtime.batch_task import BATCH


@dataclass(frozen=True)
class Told:
    """`figures` are what progress shows, failures of the telling included."""

    committed: Committed
    figures: BatchFigures


def tell_batch(committed: Committed, aftermath: Aftermath, parts: Parts) -> Told:
    batch = committed.settled.done.after.batch
    bare = BatchFigures(batch, parts.clock(), committed.durations)
    aftermath.attempt(batch, "telling of its bad rows", lambda: _tell_bad_rows(committed), None)
    figures = aftermath.attempt(batch, "taking its figures", lambda: _take(committed, parts, bare), bare)
    placement = aftermath.attempt(batch, "judging its placement", lambda: _placement(committed, parts, figures), None)
    scale = aftermath.attempt(batch, "judging its units", lambda: _scale(committed, parts), None)
    figures = replace(figures, placement=placement, scale=scale, failures=aftermath.failures)
    aftermath.attempt(batch, "noting its plan", lambda: _note_plan(committed, parts, figures), None)
    aftermath.attempt(batch, "forgetting what is old", lambda: _forget(committed, parts), None)
    aftermath.attempt(batch, "following its backfills", lambda: _follow_backfills(committed, parts), None)
    parts.head.announce(figures)
    aftermath.attempt(batch, "removing dead files", lambda: committed.files.clean_up(parts.chain, parts.on_step), None)
    news = CommitNews(batch, figures, committed.settled.draft.results)
    for listener in parts.answers.listeners:
        aftermath.attempt(batch, "a listener", partial(listener, news), None)
    if figures.failures != aftermath.failures:
        figures = replace(figures, failures=aftermath.failures)
        parts.head.announce(figures)
    return Told(committed, figures)


def _tell_bad_rows(committed: Committed) -> None:
    done = committed.settled.done
    # What is bad of the past was told when it came.
    if not any(stream.type_of(BATCH) for stream in done.streams.values()):
        say_aloud(done.streams, done.report, done.after.batch)


def _take(committed: Committed, parts: Parts, bare: BatchFigures) -> BatchFigures:
    settled = committed.settled
    figures = take_figures(
        settled.done,
        settled.draft.results,
        settled.idle,
        bare.durations,
        bare.finished_at,
        parts.head.statistics,
    )
    return parts.head.recent.rated(figures)


def _placement(committed: Committed, parts: Parts, figures: BatchFigures) -> PlacementExplained | None:
    """Where placements follow the data: what this batch says of the one it ran by."""
    with parts.plans.lock:
        placer, done = parts.plans.placer, committed.settled.done
        if placer is None:
            return None
        placer.note_batch(done.after.batch, done.plan, parts.head.statistics)
        return describe_placement(placer, figures.shipped.rows)


def _scale(committed: Committed, parts: Parts) -> UnitsNow | None:
    """Where the number of units follows the load: what this batch makes of it."""
    with parts.plans.lock:
        elastic, settled = parts.plans.elastic, committed.settled
        if elastic is None:
            return None
        is_one_task = settled.ran.begun.task.is_small
        batch_s = committed.durations.total_s
        return elastic.note_batch(settled.done, parts.head.statistics, batch_s, is_one_task=is_one_task)


def _note_plan(committed: Committed, parts: Parts, figures: BatchFigures) -> None:
    begun = committed.settled.ran.begun
    parts.plans.note_committed(figures.batch, begun.planned, figures.durations.run_s * 1e3, figures.input_rows)


def _forget(committed: Committed, parts: Parts) -> None:
    state = committed.settled.done.after
    with parts.head.lock:
        parts.plane.forget(state)
        parts.admission.forget_others(parts.plane.registry(state).by_id)


def _follow_backfills(committed: Committed, parts: Parts) -> None:
    with parts.head.lock:
        parts.plane.adoption.follow(committed.settled.done.after)
