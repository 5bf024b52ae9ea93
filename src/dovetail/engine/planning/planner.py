"""From the running queries to the plan of a batch: one draft, held once against the plan that runs.

what is given (queries, streams, state, statistics) and remembered -> draft, by `optimizer/pipeline.py`
-> Unchanged, SamePlan or NewEpoch -> the plan, and what is remembered from now on
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dovetail.engine.options import EngineOptions
from dovetail.engine.planning.compare_plans import Because, Comparison, NewEpoch, Unchanged, compare_plans
from dovetail.engine.planning.elastic_units import ElasticUnits
from dovetail.engine.planning.fill_intermediates import FillPolicy, settle_and_fill, with_intermediates
from dovetail.engine.planning.joint_planner import JointMemory, JointPlanner
from dovetail.engine.planning.key_group_placer import KeyGroupPlacer
from dovetail.engine.planning.memory import Memory
from dovetail.engine.planning.plan_history import PlanChange, PlanHistory
from dovetail.engine.state import EngineState
from dovetail.optimizer.decisions import Decide, Decisions, greedy, keep_intermediates
from dovetail.optimizer.draft import Draft, DraftSettings
from dovetail.optimizer.passes.choose_placement import even_placements
from dovetail.optimizer.passes.choose_placing_keys import ChoosePlacingKeys
from dovetail.optimizer.passes.choose_routing import choose_routings, fixed_routing, keep_routings
from dovetail.optimizer.pipeline import PassTrace, draw
from dovetail.optimizer.planned import Planned
from dovetail.optimizer.policies import PlacementPolicy, PlacingPolicy, Policies, PoliciesOf, RoutingPolicy, by_options
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.observed import IndexName
from dovetail.stats.unit_costs import UnitCosts


@dataclass(frozen=True)
class Given:
    """What batch `state.batch` is planned for. `is_resumed`: nothing ran yet in this process, and the queries are
    those of the recorded epoch.
    """

    queries: tuple[LiveQuery, ...]
    streams: Mapping[str, Stream]
    state: EngineState
    stats: StatsCatalog
    is_resumed: bool


@dataclass(frozen=True)
class Made:
    """A plan, the state that knows of it, how it compares with the running one, and what is to be remembered."""

    planned: Planned
    state: EngineState
    comparison: Comparison
    traces: tuple[PassTrace, ...]
    memory: Memory


class Planner:
    """Not thread-safe: the engine calls it under a lock. All that planning remembers is in `memory`."""

    def __init__(
        self,
        options: EngineOptions,
        units: UnitCosts,
        decide: Decide | None,
        fill_policy: FillPolicy,
    ) -> None:
        self.policies: PoliciesOf = by_options
        self.joint = JointPlanner(options, units)
        self.history = PlanHistory()
        self.memory = Memory()
        self.elastic: ElasticUnits | None = None
        self.placer: KeyGroupPlacer | None = None
        if options.places_by_samples:
            self.placer = KeyGroupPlacer(units, in_background=options.tuning.plan_in_background)
        self._options = options
        self._decide = decide
        self._fill_policy = fill_policy
        self._routing = _routing_policy(options)
        key_groups, partitions = options.partitioning.key_groups, options.partitioning.partitions
        self._even = even_placements(key_groups, partitions)
        self._may_place_by_one_key = options.may_place_by_one_key
        self._settings = DraftSettings(
            even_placement(key_groups, partitions), options.tuning.replan, options.tuning.factorize, options.shipping
        )

    @property
    def running(self) -> Planned | None:
        """What the last batch of this process ran by."""
        return self.memory.running

    def plan(self, given: Given) -> Made:
        """The plan for the next batch, remembered."""
        made = self._made(self.memory, given)
        self.memory = made.memory
        return made

    def preview(self, given: Given) -> Made:
        """The plan that would be; nothing of it is remembered."""
        return self._made(replace(self.memory, joint=self.joint.for_preview(self.memory.joint)), given)

    def note_committed(self, batch: int, planned: Planned, run_ms: float, rows: int) -> None:
        """The batch ran by this plan, and its results are real."""
        before, self.memory = self.memory, self.memory.after_batch(planned)
        if before.running is not None and before.running.plan.epoch != planned.plan.epoch:
            self.history.note_change(PlanChange(batch, planned.plan.epoch, planned.reasons, *before.joint.gain))
        self.history.note_batch(run_ms, rows)

    def _made(self, memory: Memory, given: Given) -> Made:
        turn = _JointTurn(self.joint, memory)
        drawn = draw(
            Draft(
                given.queries,
                given.streams,
                given.stats,
                given.state.batch,
                memory.running,
                self._policies(given, memory, turn),
                self._settings,
            ),
            memory.drawn,
        )
        draft = drawn.draft
        memory = replace(memory, drawn=drawn, joint=turn.memory, moved=draft.moved or memory.moved)
        state = with_intermediates(given.state, draft.decisions.intermediates)
        comparison = compare_plans(memory.running, draft, self._because(given.state.batch, memory))
        planned = _planned(comparison, draft, state.epoch if given.is_resumed and state.epoch else state.epoch + 1)
        if isinstance(comparison, NewEpoch):
            state = replace(state, epoch=planned.plan.epoch)
        return Made(planned, state, comparison, drawn.traces, memory)

    def _policies(self, given: Given, memory: Memory, turn: _JointTurn) -> Policies:
        own = self.policies(given.state.batch)
        return Policies(
            decide=self._decide or self._decider(turn),
            settle=lambda wanted, queries: settle_and_fill(
                wanted, queries, given.streams, given.state, given.stats, self._fill_policy
            ),
            placing_keys=own.placing_keys or self._placing_policy(given, memory),
            placement=own.placement or self._placement_policy(),
            routing=own.routing or self._routing,
        )

    def _decider(self, turn: _JointTurn) -> Decide:
        """The planner that the options name."""
        decide = greedy if self._options.planning.optimizer == "greedy" else turn
        if self._options.planning.keep_intermediates != "always":
            return decide

        def keeping(
            queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], stats: StatsCatalog, batch: int
        ) -> Decisions:
            kept = keep_intermediates(queries, streams, stats, batch)
            return replace(decide(queries, streams, stats, batch), intermediates=kept.intermediates)

        return keeping

    def _placing_policy(self, given: Given, memory: Memory) -> PlacingPolicy | None:
        """Where it matters which of several keys places an index."""
        if not self._may_place_by_one_key:
            return None
        newest: dict[IndexName, int] = {}
        for meta in given.state.buckets:
            for index, _ in meta.indexes:
                newest[meta.store, index] = max(meta.upper_batch, newest.get((meta.store, index), -1))
        partitions = self._settings.first_placement.partition_count
        if memory.running is not None:
            partitions = memory.running.plan.placement.partition_count
        return ChoosePlacingKeys(partitions, given.stats, newest)

    def _placement_policy(self) -> PlacementPolicy:
        choose = self._even if self.placer is None else self.placer
        return choose if self.elastic is None else self.elastic.at_scale(choose)

    def _because(self, batch: int, memory: Memory) -> Because:
        placer = self.placer
        placed = () if placer is None or placer.placed_in_batch != batch else (placer.because,)
        return Because("" if self.elastic is None else self.elastic.because, placed, memory.moved)


class _JointTurn:
    """A `Decide` for one draft: it begins with a memory, and has the one to go on with afterwards."""

    def __init__(self, joint: JointPlanner, memory: Memory) -> None:
        self._joint = joint
        self._partitions = None if memory.running is None else memory.running.plan.placement.partition_count
        self.memory: JointMemory = memory.joint

    def __call__(
        self, queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], stats: StatsCatalog, _batch: int
    ) -> Decisions:
        decisions, self.memory = self._joint.decide(self.memory, queries, streams, stats, self._partitions)
        return decisions


def _routing_policy(options: EngineOptions) -> RoutingPolicy:
    if options.fixed_routing is not None:
        return fixed_routing(options.fixed_routing)
    return choose_routings if options.tuning.replan else keep_routings


def _planned(comparison: Comparison, draft: Draft, epoch: int) -> Planned:
    if isinstance(comparison, Unchanged):
        return comparison.running
    return Planned(
        plan=replace(draft.plan, epoch=epoch) if isinstance(comparison, NewEpoch) else comparison.running.plan,
        queries=draft.queries,
        decisions=draft.decisions,
        stats=draft.stats,
        orders=draft.orders,
        reasons=comparison.reasons if isinstance(comparison, NewEpoch) else (),
        routings=draft.routings,
        asked=draft.asked,
        drawn=draft.plan,
    )
