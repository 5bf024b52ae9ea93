"""The record that passes hand on: what a plan is made from, and what of it is made so far.

Each field below the line is written by one pass. A draft begins as the one before it with other givens, so a pass finds
its own answer of last time there, and leaves it if that is still the answer: what did not change is the same object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.orders import Forms, Orders
from dovetail.optimizer.planned import Planned
from dovetail.optimizer.policies import ChosenRouting, Policies
from dovetail.plan.fill import FillPlan
from dovetail.plan.group_plan import GroupPlan
from dovetail.plan.intermediate import Intermediate
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.lone_rows import LoneRows, MatchedRows
from dovetail.plan.placement import ONE_PARTITION, Placement, Placements
from dovetail.plan.probe_tree import ProbeTree
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.shipping import Shipping
from dovetail.plan.store_plan import StorePlan
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog

UNNUMBERED = 0
"""The epoch of a draft: whether there is a new one is known when it is held against the running plan."""
NO_PLAN = SharedPlan(UNNUMBERED, (), (), Placements(ONE_PARTITION), ())


@dataclass(frozen=True)
class IntermediateUsers:
    """A join that is kept, and its users with its members (and no others) collapsed into one relation."""

    intermediate: Intermediate
    users: tuple[LiveQuery, ...]


@dataclass(frozen=True)
class RunningForms:
    """Queries as they run by decisions: with their ranks, and those that maintain intermediates behind them.

    `collapsed` by query and start are the forms that probe intermediates now, `later_collapsed` those that will.
    """

    running: tuple[LiveQuery, ...] = ()
    collapsed: Forms = field(default_factory=dict)
    later_collapsed: Forms = field(default_factory=dict)
    users_by_store: Mapping[str, IntermediateUsers] = field(default_factory=dict)

    @cached_property
    def by_id(self) -> dict[str, LiveQuery]:
        return {live.id: live for live in self.running}

    @property
    def pairing(self) -> tuple[LiveQuery, ...]:
        """Those that answer pairs; the others only ask who has a partner."""
        return tuple(live for live in self.running if live.query.kind.answers_pairs)


@dataclass(frozen=True)
class PlacedTrees:
    """All that probes, every index placed by the key that was chosen for it; `later` are trees to come."""

    trees: tuple[ProbeTree, ...] = ()
    later: tuple[ProbeTree, ...] = ()
    fills: tuple[FillPlan, ...] = ()
    lone_rows: tuple[LoneRows, ...] = ()
    matched_rows: tuple[MatchedRows, ...] = ()

    @property
    def indexed(self) -> tuple[ProbeTree, ...]:
        """Those for whose sake stores keep indexes. A fill brings its own: its rows are old."""
        lone = (each.tree for each in self.lone_rows)
        return (*self.trees, *self.later, *lone, *(tree for each in self.matched_rows for tree in each.trees))


@dataclass(frozen=True)
class DraftSettings:
    """`first_placement`: how many key groups there are, and where they lie while no policy says else.

    `may_replan`: other statistics may give another plan. `factorize`: aggregates may be had without joined rows.
    """

    first_placement: Placement = ONE_PARTITION
    may_replan: bool = True
    factorize: bool = True
    shipping: Shipping | None = None


@dataclass(frozen=True)
class Draft:
    """`now` are the newest statistics, `stats` those that are planned by. `running` is what the last batch ran by."""

    asked: tuple[LiveQuery, ...]
    streams: Mapping[str, Stream]
    now: StatsCatalog
    batch: int = 0
    running: Planned | None = None
    policies: Policies = field(default_factory=Policies)
    settings: DraftSettings = field(default_factory=DraftSettings)
    # What passes make of it.
    queries: tuple[LiveQuery, ...] = ()
    groups: tuple[GroupPlan, ...] = ()
    stats: StatsCatalog = field(default_factory=StatsCatalog)
    moved: tuple[str, ...] = ()
    decisions: Decisions = field(default_factory=Decisions)
    forms: RunningForms = field(default_factory=RunningForms)
    orders: Orders = field(default_factory=dict)
    trees: tuple[ProbeTree, ...] = ()
    later_trees: tuple[ProbeTree, ...] = ()
    fills: tuple[FillPlan, ...] = ()
    lone_rows: tuple[LoneRows, ...] = ()
    matched_rows: tuple[MatchedRows, ...] = ()
    keyed: PlacedTrees = field(default_factory=PlacedTrees)
    stores: tuple[StorePlan, ...] = ()
    assembled: SharedPlan = NO_PLAN
    factorized: SharedPlan = NO_PLAN
    placed: SharedPlan = NO_PLAN
    routings: tuple[ChosenRouting, ...] = ()
    plan: SharedPlan = NO_PLAN


def revised(known: SharedPlan, plan: SharedPlan, **changes: Any) -> SharedPlan:
    """`plan` with changes: `plan` itself if it has them already, or `known` if that is what comes out."""
    if all(getattr(plan, name) == value for name, value in changes.items()):
        return plan
    unchanged = (each.name for each in fields(SharedPlan) if each.name not in changes)
    is_known = all(getattr(known, name) is getattr(plan, name) for name in unchanged) and all(
        getattr(known, name) == value for name, value in changes.items()
    )
    return known if is_known else replace(plan, **changes)


def count_of(count: int, what: str) -> str:
    """In words: `1 tree`, `2 trees`, `3 queries`."""
    if count == 1:
        return f"1 {what}"
    many = {"query": "queries", "index": "indexes", "class": "classes"}
    return f"{count:,} {many.get(what, f'{what}s')}"
