"""A draft held against the running plan: the same, other figures with the same plan, or a new epoch and why."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.draft import Draft
from dovetail.optimizer.passes.choose_placement import placement_changes
from dovetail.optimizer.passes.choose_placing_keys import placing_changes
from dovetail.optimizer.passes.choose_routing import routing_changes
from dovetail.optimizer.planned import Planned
from dovetail.plan.key_classes import uses_of


@dataclass(frozen=True)
class Unchanged:
    """What runs goes on."""

    running: Planned


@dataclass(frozen=True)
class SamePlan:
    """Other figures, the same plan: nobody needs to hear of it."""

    running: Planned


@dataclass(frozen=True)
class NewEpoch:
    """Another plan, or the first; the first needs no reasons."""

    reasons: tuple[str, ...] = ()


Comparison = Unchanged | SamePlan | NewEpoch


@dataclass(frozen=True)
class Because:
    """What the engine knows of reasons: why there are as many partitions, why key groups are placed anew, and which
    figures moved since the epoch began.
    """

    partitions: str = ""
    placed: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()


def compare_plans(running: Planned | None, draft: Draft, because: Because) -> Comparison:
    if running is None:
        return NewEpoch()
    is_known = running.stats is draft.stats and (running.asked, running.decisions) == (draft.asked, draft.decisions)
    if is_known and draft.plan is running.drawn and draft.routings == running.routings:
        return Unchanged(running)
    if draft.plan == running.drawn:
        return SamePlan(running)
    placed_by_others = placing_changes(running.plan, draft.plan)
    differences = [
        *_asked_differences(running, draft),
        *_kept_differences(running, draft),
        *placed_by_others,
        *placement_changes(
            running.plan.placements, draft.plan.placements, uses_of(running.plan), because=because.partitions
        ),
        *routing_changes(running.routings, draft.routings),
    ]
    # What moved is a reason for other trees; a placement or a routing that changes alone has its own.
    moved = () if is_known and not placed_by_others else because.moved
    return NewEpoch((*differences, *because.placed, *moved))


def _asked_differences(running: Planned, draft: Draft) -> list[str]:
    before, now = ({live.id: live.name for live in each} for each in (running.asked, draft.asked))
    created = [f"query {now[query]} was created" for query in now if query not in before]
    return created + [f"query {before[query]} ended" for query in before if query not in now]


def _kept_differences(running: Planned, draft: Draft) -> list[str]:
    kept_before, kept_now = (
        {each.intermediate.id for each in decisions.intermediates} for decisions in (running.decisions, draft.decisions)
    )
    names = {live.id: live.name for live in draft.asked}
    reasons = [f"{store} is kept" for store in sorted(kept_now - kept_before)]
    reasons += [f"{store} is no longer kept" for store in sorted(kept_before - kept_now)]
    ready_before, ready_now = _ready(running.decisions), _ready(draft.decisions)
    return reasons + [
        f"new {start} of {names.get(query, query)} may probe {store}"
        for store, query, start in sorted(ready_now - ready_before)
    ]


def _ready(decisions: Decisions) -> set[tuple[str, str, str]]:
    return {
        (kept.intermediate.id, use.query, start)
        for kept in decisions.intermediates
        for use in kept.uses
        for start in use.starts
    }
