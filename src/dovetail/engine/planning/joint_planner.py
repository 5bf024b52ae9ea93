"""Joint plans while batches run: asked for when queries or statistics change, taken over at a batch edge (C6).

A batch never waits for a plan: queries that no plan knows yet run by greedy orders, the others go on as before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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


@dataclass(frozen=True)
class JointMemory:
    """What joint planning remembers: the plan that it goes on from, what was asked last, what is being sought.

    `gain` are the expected costs of the plan before and of the one that was taken over, under the same statistics.
    """

    current: JointDecision | None = None
    asked: tuple[tuple[str, ...], StatsCatalog] | None = None
    asking: Background[tuple[JointDecision, float]] | None = None
    rest: Rest = field(default_factory=Rest)
    gain: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class JointPlanner:
    """Decides by a memory, and gives the one that comes after it."""

    options: EngineOptions
    units: UnitCosts

    def decide(
        self,
        memory: JointMemory,
        queries: tuple[LiveQuery, ...],
        streams: Mapping[str, Stream],
        stats: StatsCatalog,
        partitions: int | None = None,
    ) -> tuple[Decisions, JointMemory]:
        """`partitions` of None: as many as the options say."""
        memory = self._taken_over(memory)
        asked = (tuple(live.id for live in queries), stats)
        is_idle = memory.asking is None and memory.rest.is_over
        if is_idle and not _is_same(memory.asked, asked) and _is_worthwhile(queries, stats):
            options = self._joint_options(partitions or self.options.partitioning.partitions)
            is_from_scratch = memory.asked is None or memory.asked[1] is not stats
            question = Question(queries, dict(streams), stats, options, memory.current, is_from_scratch)
            is_background = self.options.tuning.plan_in_background
            work = f"planning {len(queries)} queries"
            asking = Background(work, lambda: answer(question), gives_way=is_background)
            if not is_background:
                asking.wait()
            memory = self._taken_over(replace(memory, asked=asked, asking=asking))
        current = memory.current
        return (Decisions() if current is None else _still_live(current.decisions, queries)), memory

    def for_preview(self, memory: JointMemory) -> JointMemory:
        """By which it decides as at the next batch; what it asked would be answered when nobody looks any more."""
        return replace(memory, rest=Rest(math.inf)) if self.options.tuning.plan_in_background else memory

    def _joint_options(self, partitions: int) -> JointOptions:
        is_background = self.options.tuning.plan_in_background
        return JointOptions(
            budget_s=BACKGROUND_BUDGET_S if is_background else INLINE_BUDGET_S,
            may_materialize=self.options.planning.keep_intermediates == "by cost",
            storage_budget=self.options.limits.storage_budget,
            units=self.units,
            partitions=partitions,
        )

    def _taken_over(self, memory: JointMemory) -> JointMemory:
        """With the answer, if there is one by now."""
        asking = memory.asking
        if asking is None or not asking.is_over:
            return memory
        is_background = self.options.tuning.plan_in_background
        memory = replace(memory, asking=None, rest=Rest.after(asking.core_seconds) if is_background else memory.rest)
        if asking.answer is None:
            return memory
        found, cost_before = asking.answer
        is_new = memory.current is None or found.decisions != memory.current.decisions
        return replace(memory, current=found, gain=(cost_before, found.cost) if is_new else memory.gain)


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
