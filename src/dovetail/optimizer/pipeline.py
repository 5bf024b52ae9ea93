"""Planning as a list: from live queries to one shared plan, a pass a line, in the order in which they run.

Each pass is a file of its name in `passes/`: `revise` takes a draft and gives the next one, `tell` says in words what
is in it. A pass runs when something that it reads is another object than in the draft before; else its answer of then
stands. What a pass costs and changed is noted here, not in the passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter, is_not
from typing import Protocol

from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.draft import Draft, DraftSettings
from dovetail.optimizer.passes import (
    assemble_plan,
    check_plan,
    choose_decisions,
    choose_factorizations,
    choose_placement,
    choose_placing_keys,
    choose_routing,
    choose_statistics,
    derive_forms,
    derive_stores,
    plan_fills,
    plan_groups,
    plan_lone_rows,
    share_probe_prefixes,
    take_orders,
)
from dovetail.optimizer.policies import PlacingPolicy, Policies
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import Placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog


@dataclass(frozen=True)
class Pass:
    """`reads` are fields of the draft, or of those. `is_due`: whether it must run though all of them are the same."""

    name: str
    revise: Callable[[Draft], Draft]
    tell: Callable[[Draft], str]
    reads: tuple[str, ...]
    is_due: Callable[[Draft, Draft], bool] | None = None


class PassModule(Protocol):
    """A file of `passes/`."""

    __name__: str

    def revise(self, draft: Draft) -> Draft: ...

    def tell(self, draft: Draft) -> str: ...


def _pass(module: PassModule, *reads: str, is_due: Callable[[Draft, Draft], bool] | None = None) -> Pass:
    return Pass(module.__name__.rpartition(".")[2], module.revise, module.tell, reads, is_due)


PASSES = (
    _pass(plan_groups, "asked"),
    _pass(choose_statistics, "queries", "now", "running"),
    _pass(choose_decisions, "queries", "streams", "stats", "batch", "policies"),
    _pass(derive_forms, "queries", "streams", "decisions"),
    _pass(take_orders, "forms", "stats", "decisions"),
    _pass(share_probe_prefixes, "forms", "stats", "decisions", "orders"),
    _pass(plan_fills, "forms", "stats", "decisions"),
    _pass(plan_lone_rows, "forms"),
    _pass(
        choose_placing_keys,
        *("trees", "later_trees", "fills", "lone_rows", "matched_rows"),
        is_due=choose_placing_keys.is_due,
    ),
    _pass(derive_stores, "forms", "streams", "keyed"),
    _pass(assemble_plan, "forms", "groups", "keyed", "stores", "settings"),
    _pass(choose_factorizations, "assembled", "settings"),
    # The data may ask for other placements and routings with every batch, whatever the trees.
    _pass(choose_placement, "factorized", "now", "running", "policies"),
    _pass(choose_routing, "placed", "now", "running", "policies.routing", "settings"),
    _pass(check_plan, "forms", "orders", "plan"),
)


@dataclass(frozen=True)
class PassTrace:
    """What a pass did when it ran last: for the plan of `batch`, in `seconds`. `before` is what it told until then.

    `is_kept`: this time it had no reason to run.
    """

    name: str
    batch: int
    seconds: float
    tells: str
    before: str | None = None
    is_kept: bool = False


@dataclass(frozen=True)
class Drawn:
    """A draft on which all passes ran, and how they went."""

    draft: Draft
    traces: tuple[PassTrace, ...]


def draw(given: Draft, last: Drawn | None = None) -> Drawn:
    """All passes over what is given; those that find nothing new leave what they made of `last`."""
    before = None if last is None else last.draft
    draft = given if before is None else _beginning(given, before)
    traces = []
    for number, each in enumerate(PASSES):
        known = None if last is None else last.traces[number]
        if known is not None and before is not None and not _is_due(each, draft, before):
            traces.append(replace(known, is_kept=True))
            continue
        began = time.perf_counter()
        draft = each.revise(draft)
        seconds = time.perf_counter() - began
        told = None if known is None else known.tells
        traces.append(PassTrace(each.name, draft.batch, seconds, each.tell(draft), told))
    return Drawn(draft, tuple(traces))


def _beginning(given: Draft, before: Draft) -> Draft:
    """The draft before, with what is given now; equal queries and streams are the same objects."""
    return replace(
        before,
        asked=before.asked if before.asked == given.asked else given.asked,
        streams=before.streams if before.streams == given.streams else given.streams,
        now=given.now,
        batch=given.batch,
        running=given.running,
        policies=given.policies,
        settings=before.settings if before.settings == given.settings else given.settings,
    )


def _is_due(each: Pass, draft: Draft, before: Draft) -> bool:
    if any(is_not(read(draft), read(before)) for read in map(attrgetter, each.reads)):
        return True
    return each.is_due is not None and each.is_due(draft, before)


def plan_queries(
    queries: tuple[LiveQuery, ...],
    streams: Mapping[str, Stream],
    placement: Placement,
    *,
    epoch: int,
    stats: StatsCatalog | None = None,
    decisions: Decisions | None = None,
    placing_keys: PlacingPolicy | None = None,
    factorize: bool = False,
) -> SharedPlan:
    """The plan by decisions that are known, where nothing runs yet."""
    decided = decisions or Decisions()
    policies = Policies(decide=lambda *_: decided, placing_keys=placing_keys)
    settings = DraftSettings(placement, factorize=factorize)
    given = Draft(queries, streams, stats or StatsCatalog(), policies=policies, settings=settings)
    return replace(draw(given).draft.plan, epoch=epoch)
