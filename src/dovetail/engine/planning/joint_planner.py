"""Joint plans while batches run: asked for when queries or statistics change, taken over at a batch edge (C6).

A batch never waits for a plan: queries that no plan knows yet run by greedy orders, the others go on as before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace

from dovetail.engine.options import EngineOptions
from dovetail.engine.planning.background import Background
from dovetail.engine.planning.rest import Rest
from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.intermediates.kept import KeptIntermediate, maintained_by
from dovetail.optimizer.joint.decide_jointly import (
    JointDecision,
    JointOptions,
    decide_changed,
    decide_greedily,
    decide_jointly,
    reprice,
    with_price_of_state,
)
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.unit_costs import UnitCosts

SMALLEST = 3
"""A join of two has one order per start: nothing to decide."""
INLINE_BUDGET_S = 0.5
BACKGROUND_BUDGET_S = 1.0
WORTH_A_CHANGE = 0.9
"""A new plan must promise to cost less than this share of the running one: a change has a price, and costs an error."""


@dataclass(frozen=True)
class Question:
    """What is to be planned; `known` is the running plan, `is_from_scratch` that more changed than queries."""

    queries: tuple[LiveQuery, ...]
    streams: Mapping[str, Stream]
    stats: StatsCatalog
    options: JointOptions
    known: JointDecision | None
    is_from_scratch: bool


class JointPlanner:
    """A `Decide` with a memory. Not thread-safe: the engine calls it under its lock."""

    def __init__(self, options: EngineOptions, units: UnitCosts) -> None:
        self._options = options
        self.units = units
        self.partitions = options.partitioning.partitions
        self.current: JointDecision | None = None
        self._asked: tuple[tuple[str, ...], StatsCatalog] | None = None
        self._asking: Background[tuple[JointDecision, float]] | None = None
        self._rest = Rest()
        self._gain: tuple[float | None, float | None] = (None, None)

    def __call__(
        self, queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], stats: StatsCatalog, _batch: int
    ) -> Decisions:
        self._take_over()
        asked = (tuple(live.id for live in queries), stats)
        is_idle = self._asking is None and self._rest.is_over
        if is_idle and not _is_same(self._asked, asked) and _is_worthwhile(queries, stats):
            self._ask(queries, streams, stats)
            self._asked = asked
            self._take_over()
        return Decisions() if self.current is None else _still_live(self.current.decisions, queries)

    def for_preview(self) -> JointPlanner:
        """One that decides as this one would at the next batch, and of which this one never hears."""
        other = copy(self)
        if self._options.tuning.plan_in_background:
            # What it asked would be answered when nobody looks any more.
            other._rest = Rest(math.inf)
        return other

    def take_gain(self) -> tuple[float | None, float | None]:
        """Expected cost of the plan before and of the one that was taken over, under the same statistics; once."""
        gain, self._gain = self._gain, (None, None)
        return gain

    def wait(self) -> None:
        """Until no question is open."""
        if self._asking is not None:
            self._asking.wait()

    def _ask(self, queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], stats: StatsCatalog) -> None:
        is_background = self._options.tuning.plan_in_background
        options = JointOptions(
            budget_s=BACKGROUND_BUDGET_S if is_background else INLINE_BUDGET_S,
            may_materialize=self._options.planning.keep_intermediates == "by cost",
            storage_budget=self._options.limits.storage_budget,
            units=self.units,
            partitions=self.partitions,
        )
        is_from_scratch = self._asked is None or self._asked[1] is not stats
        question = Question(queries, dict(streams), stats, options, self.current, is_from_scratch)
        self._asking = Background(f"planning {len(queries)} queries", lambda: answer(question))
        if not is_background:
            self.wait()

    def _take_over(self) -> None:
        asking = self._asking
        if asking is None or not asking.is_over:
            return
        self._asking = None
        if self._options.tuning.plan_in_background:
            self._rest.begin_after(asking.core_seconds)
        if asking.answer is not None:
            found, cost_before = asking.answer
            if self.current is None or found.decisions != self.current.decisions:
                self._gain = (cost_before, found.cost)
            self.current = found


def answer(question: Question) -> tuple[JointDecision, float]:
    """The running plan as far as it goes, unless another one is cheaper by more than a change is worth; and what the
    running one costs now. Before anything was decided the greedy plan runs.
    """
    options = with_price_of_state(question.queries, question.stats, question.options)
    asked = (question.queries, question.streams, question.stats, options)
    known = question.known
    found = None if known is None or question.is_from_scratch else decide_changed(*asked, known)
    if found is None:
        found = decide_jointly(*asked, known)
    kept = decide_greedily(*asked) if known is None else reprice(*asked, known)
    return (found if found.cost < WORTH_A_CHANGE * kept.cost else kept), kept.cost


def _is_same(one: tuple[tuple[str, ...], StatsCatalog] | None, other: tuple[tuple[str, ...], StatsCatalog]) -> bool:
    return one is not None and one[0] == other[0] and one[1] is other[1]


def _is_worthwhile(queries: tuple[LiveQuery, ...], stats: StatsCatalog) -> bool:
    """Assumptions are the same for all streams: nothing to plan by until something is given or counted."""
    is_informed = bool(stats.observed.tallies or stats.rows_in_window or stats.key_match)
    return is_informed and any(len(live.query.relations) >= SMALLEST for live in queries)


def _still_live(decisions: Decisions, queries: tuple[LiveQuery, ...]) -> Decisions:
    """Without dropped queries and what only they used. An intermediate keeps its name, and so its rows."""
    ids = {live.id for live in queries}
    kept = tuple(_used_by(each, ids) for each in decisions.intermediates if any(use.query in ids for use in each.uses))
    owners = ids | {maintained_by(each.intermediate) for each in kept}
    orders = {key: order for key, order in decisions.orders.items() if key[0] in owners}
    return Decisions(orders, kept, decisions.rank_order)


def _used_by(kept: KeptIntermediate, ids: set[str]) -> KeptIntermediate:
    return replace(kept, uses=tuple(use for use in kept.uses if use.query in ids))
