"""One look at the engine: all that the records of EXPLAIN are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from dovetail.engine.engine import Engine
from dovetail.engine.explain.price_plan import PricedPlan, price_plan
from dovetail.engine.explain.served_queries import ServedQueries
from dovetail.engine.progress.figures import StepFigures
from dovetail.engine.progress.recent_batches import RecentBatches
from dovetail.engine.state import EngineState
from dovetail.optimizer.intermediates.kept import KeptIntermediate, Use, maintained_by
from dovetail.optimizer.planned import Planned
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.probe_tree import Leg
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog


@dataclass(frozen=True)
class Look:
    """Everything is said of the plan that the next batch would use."""

    engine: Engine
    planned: Planned
    stats: StatsCatalog
    state: EngineState
    recent: RecentBatches
    priced: PricedPlan

    @staticmethod
    def at(engine: Engine, alone_for: Collection[str] | None = None) -> Look:
        """Only the queries of `alone_for` (None: all) are priced as if they were alone."""
        return Look.at_planned(engine, engine.plans.planned(), alone_for)

    @staticmethod
    def at_planned(engine: Engine, planned: Planned, alone_for: Collection[str] | None = None) -> Look:
        priced = price_plan(engine, planned, alone_for)
        return Look(engine, planned, engine.head.statistics, engine.head.state, engine.head.recent, priced)

    @property
    def plan(self) -> SharedPlan:
        return self.planned.plan

    @cached_property
    def live_by_id(self) -> dict[str, LiveQuery]:
        return {live.id: live for live in self.planned.queries}

    @cached_property
    def joining_by_user(self) -> dict[str, str]:
        """By query that reads groups, what joins their rows."""
        return {user.query: group.id for group in self.plan.groups for user in group.users}

    @cached_property
    def served(self) -> ServedQueries:
        return ServedQueries(self.plan, {live.id: live.name for live in self.planned.asked})

    @cached_property
    def step_by_node(self) -> dict[str, StepFigures]:
        """What the last batch counted."""
        return {} if self.recent.last is None else {step.node: step for step in self.recent.last.steps}

    @cached_property
    def stream_by_store(self) -> dict[str, str]:
        """Stores of intermediates hold rows of no stream."""
        return {store.id: store.stream for store in self.plan.stores if store.stream in self.engine.streams.by_name}

    @cached_property
    def kept_by_store(self) -> dict[str, KeptIntermediate]:
        return {each.intermediate.id: each for each in self.planned.decisions.intermediates}

    @cached_property
    def store_by_owner(self) -> dict[str, str]:
        """What maintains an intermediate goes through probe trees like a query, under an id of its own."""
        return {maintained_by(kept.intermediate): store for store, kept in self.kept_by_store.items()}

    def names(self, legs: Iterable[Leg]) -> tuple[str, ...]:
        # A self-join takes a step once for each of its starts.
        return tuple(self.served.names({leg.query for leg in legs if leg.query in self.live_by_id}))

    def maintained(self, legs: Iterable[Leg]) -> tuple[str, ...]:
        """Intermediates whose upkeep is among the legs."""
        return tuple(sorted({self.store_by_owner[leg.query] for leg in legs if leg.query in self.store_by_owner}))

    def use_of(self, store: str, query: str) -> Use | None:
        """How the query uses the intermediate."""
        kept = self.kept_by_store.get(store)
        return next((use for use in kept.uses if use.query == query), None) if kept else None
