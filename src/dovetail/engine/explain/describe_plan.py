"""From the engine to the records of EXPLAIN: stores, intermediates, probe steps, costs and the last change."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from dovetail.engine.engine import Engine
from dovetail.engine.explain.describe_placement import describe_placement
from dovetail.engine.explain.names_of_takers import NamesOfTakers
from dovetail.engine.explain.price_plan import PricedPlan, price_plan
from dovetail.engine.explain.records import (
    AnswerExplained,
    ChangeExplained,
    CostExplained,
    ExpectedRows,
    GroupsExplained,
    IndexExplained,
    IntermediateExplained,
    IntermediateUser,
    KeptUntil,
    PartitioningExplained,
    PlacementExplained,
    PlanExplained,
    ProbeExplained,
    QueryCostExplained,
    RoutingExplained,
    RowFigures,
    SelectionExplained,
    StepExplained,
    StoreExplained,
)
from dovetail.engine.observe.step_tallies import edge_of_step
from dovetail.engine.planning.plan_history import PlanChange
from dovetail.engine.planning.planner import Planned
from dovetail.engine.planning.settle_intermediates import kept_for
from dovetail.engine.state import EngineState
from dovetail.optimizer.intermediates.kept import KeptIntermediate, Use, maintained_by
from dovetail.plan.group_plan import GroupPlan
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.probe_tree import Leg, ProbeNode
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import StorePlan
from dovetail.query.expression import TRUE, Expression
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.estimate import Estimate


@dataclass(frozen=True)
class PlanDescriber:
    """One look at the engine; everything is said of the plan that the next batch would use."""

    engine: Engine
    planned: Planned
    stats: StatsCatalog
    state: EngineState
    priced: PricedPlan

    @staticmethod
    def of(engine: Engine, alone_for: Collection[str] | None = None) -> PlanDescriber:
        """Only the queries of `alone_for` (None: all) are priced as if they were alone."""
        return PlanDescriber.of_planned(engine, engine.plans.planned(), alone_for)

    @staticmethod
    def of_planned(engine: Engine, planned: Planned, alone_for: Collection[str] | None = None) -> PlanDescriber:
        priced = price_plan(engine, planned, alone_for)
        return PlanDescriber(engine, planned, engine.head.statistics, engine.head.state, priced)

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
    def _taker_names(self) -> NamesOfTakers:
        return NamesOfTakers(self.plan, {live.id: live.name for live in self.planned.asked})

    @cached_property
    def stream_by_store(self) -> dict[str, str]:
        """Stores of intermediates hold rows of no stream."""
        return {store.id: store.stream for store in self.plan.stores if store.stream in self.engine.streams.by_name}

    @cached_property
    def store_by_owner(self) -> dict[str, str]:
        """What maintains an intermediate goes through probe trees like a query, under an id of its own."""
        kept = (each.intermediate for each in self.planned.decisions.intermediates)
        return {maintained_by(intermediate): intermediate.id for intermediate in kept}

    def _placement(self) -> PlacementExplained | None:
        placer, figures = self.engine.plans.placer, self.engine.head.figures
        if placer is None:
            return None
        return describe_placement(placer, None if figures is None else figures.shipped.rows)

    def whole(self) -> PlanExplained:
        plan = self.plan
        groups = plan.placement
        changes = self.engine.plans.changes
        return PlanExplained(
            epoch=plan.epoch,
            batch=self.state.batch + 1,
            queries=tuple(live.name for live in self.planned.asked),
            hops=plan.hop_count,
            stores=tuple(self.store(store) for store in plan.stores),
            intermediates=tuple(self.intermediate(kept) for kept in self.planned.decisions.intermediates),
            groups=tuple(map(self.groups, plan.groups)),
            partitioning=PartitioningExplained(
                groups.group_count,
                groups.partition_count,
                tuple(groups.partition_by_group.count(number) for number in range(groups.partition_count)),
                self._placement(),
                None if self.engine.plans.elastic is None else self.engine.plans.elastic.now,
            ),
            probes=tuple(
                ProbeExplained(
                    tree.start,
                    self.names(tree.legs),
                    self.maintained(tree.legs),
                    tuple(self.step(node, (tree.start,)) for node in tree.children),
                    rows,
                )
                for rows, tree in plan.asked_trees
            ),
            cost=self.cost(),
            last_change=_change(changes[-1]) if changes else None,
            next_change=self.planned.reasons if plan.epoch != self.state.epoch else (),
        )

    def names(self, legs: Iterable[Leg]) -> tuple[str, ...]:
        # A self-join takes a step once for each of its starts.
        return tuple(self._taker_names.of({leg.query for leg in legs if leg.query in self.live_by_id}))

    def maintained(self, legs: Iterable[Leg]) -> tuple[str, ...]:
        """Intermediates whose upkeep is among the legs."""
        return tuple(sorted({self.store_by_owner[leg.query] for leg in legs if leg.query in self.store_by_owner}))

    # Stores

    def store(self, store: StorePlan, selections: Iterable[Expression] | None = None) -> StoreExplained:
        """With what these selections (all, if None) let pass."""
        tested = [s for s in (store.tested_selections if selections is None else selections) if s != TRUE]
        keep = store.retention.keep_us_by_stream
        return StoreExplained(
            store=store.id,
            is_intermediate=store.id not in self.stream_by_store,
            columns=store.columns,
            keeps_all_rows=store.keeps_all,
            retention=None if keep is None else tuple(KeptUntil(stream, us / 1e6) for stream, us in keep),
            rows=self._rows(store),
            stored_bytes=sum(meta.size_bytes for meta in self.state.buckets if meta.store == store.id),
            indexes=tuple(self._index(store.id, index.id) for index in store.indexes),
            selections=tuple(SelectionExplained(str(s), self.stats.selection(s, store.id)) for s in tested),
            queries=self.users_of(store.id),
        )

    def users_of(self, store: str) -> tuple[str, ...]:
        """Names of the queries that have the store's stream among theirs, or that use the intermediate."""
        used = {
            use.query
            for kept in self.planned.decisions.intermediates
            for use in kept.uses
            if kept.intermediate.id == store
        }
        used |= {leg.query for asked, leg in self.plan.asked_legs() if asked == store}
        return tuple(self._taker_names.of(used & self.live_by_id.keys()))

    def _rows(self, store: StorePlan) -> RowFigures:
        stats, stream = self.stats, store.stream
        if store.id not in self.stream_by_store:
            return RowFigures(None, None, None, None, stats.stored_rows(store.id))
        return RowFigures(
            stats.batch_rows(stream),
            stats.rows_per_s(stream),
            stats.late_share(stream),
            stats.rows(stream),
            stats.stored_rows(store.id),
        )

    def _index(self, store: str, index: str) -> IndexExplained:
        distinct = self.stats.distinct(store, index)
        shares = sorted(self.stats.heavy_share_by_code(store, index).values(), reverse=True)
        return IndexExplained(
            index=index,
            distinct_keys=distinct,
            frequent_keys=None if distinct is None else len(shares),
            largest_key_share=shares[0] if shares else None,
            routing=self._routing(store, index),
        )

    def _routing(self, store: str, index: str) -> RoutingExplained:
        chosen = next(each for each in self.planned.routings if (each.store, each.index) == (store, index))
        routing = chosen.routing
        split = len(routing.split_stored), len(routing.split_probing)
        return RoutingExplained(str(routing), chosen.because, routing.subgroups, *split)

    # Intermediates

    def intermediate(self, kept: KeptIntermediate, only_for: str | None = None) -> IntermediateExplained:
        """With all its users, or with the starts of one query only."""
        store = kept.intermediate.id
        joins = self.priced.running.joins_by_store[store]
        upkeep = [each for each in self.priced.book.upkeep if each.join in joins]
        return IntermediateExplained(
            store=store,
            members=kept.intermediate.streams,
            joins_rows_from_batch=kept.complete_from,
            users=tuple(
                IntermediateUser(", ".join(self._taker_names.of([use.query])), start, *self._standing(kept, use, start))
                for use in kept.uses
                if only_for in (None, use.query)
                for start in use.wanted_starts
            ),
            expected_rows=sum(each.stored_rows for each in upkeep),
            expected_bytes=sum(each.stored_bytes for each in upkeep),
            upkeep_ms=sum(each.cost_s for each in upkeep) * 1e3,
            observed_rows=self.stats.stored_rows(store),
            observed_bytes=sum(meta.size_bytes for meta in self.state.buckets if meta.store == store),
        )

    def _standing(self, kept: KeptIntermediate, use: Use, start: str) -> tuple[bool, str | None]:
        if start in use.starts:
            return True, None
        if kept.fill is not None:
            return False, f"it is being filled with rows older than batch {kept.fill.before_batch}"
        live = self.live_by_id[use.query]
        batch = self.state.batch + 1
        since = kept_for(use, live, kept.intermediate, self.engine.streams.by_name, replace(self.state, batch=batch))
        if since == batch:
            return False, f"it begins with batch {batch}"
        if any(live.time_closure.get((alias, start)) is None for alias in use.aliases):
            return False, f"rows older than batch {since} never die for it: no time bound lets them go"
        return False, f"it waits until everything older than batch {since} is dead"

    # Probe steps

    def step(self, node: ProbeNode, path: tuple[str, ...], *, is_followed: bool = True) -> StepExplained:
        """`path` are the stores of the probing members; the steps that follow are part of it if `is_followed`."""
        cost = self.priced.cost_of(node)
        found, probing = cost.found_rows, cost.probing_rows
        return StepExplained(
            step=node.id,
            member=node.member,
            store=node.step.target,
            index=node.step.index.id,
            probe_keys=tuple(map(str, node.step.probe_keys)),
            visibility=node.step.visibility.value,
            queries=self.names(node.legs),
            maintains=self.maintained(node.legs),
            expected=ExpectedRows(
                probing, found, found / probing if probing else None, self.priced.basis_by_step[cost.step]
            ),
            observed_rows_per_probing_row=self.stats.step(node.id),
            match=self._match(node, path),
            cost_ms=cost.cost_s * 1e3,
            answers=self._answers(node),
            steps=tuple(self.step(child, (*path, node.step.target)) for child in node.children if is_followed),
        )

    def _match(self, node: ProbeNode, path: tuple[str, ...]) -> Estimate | None:
        """How probable it is that two rows meet there by their keys; nobody counts that of rows of intermediates."""
        streams = self.stream_by_store
        if not node.step.index.keys or not {*path, node.step.target} <= set(streams):
            return None
        return self.stats.match(edge_of_step(node, [streams[store] for store in path], streams[node.step.target]))

    def _answers(self, node: ProbeNode) -> tuple[AnswerExplained, ...]:
        emit_by_taker = {(emit.query, emit.start): emit for emit in node.emits}
        taking = [(leg, emit_by_taker.get((leg.query, leg.start))) for leg in node.legs]
        return tuple(
            AnswerExplained(
                ", ".join(self._taker_names.of([leg.query])) if leg.query in self.live_by_id else None,
                emit.into,
                None if leg.selection == TRUE else str(leg.selection),
                emit.factorization.side.value if emit.factorization else None,
                emit.why_built,
            )
            for leg, emit in taking
            if emit is not None
        )

    # Costs

    def cost(self) -> CostExplained:
        book = self.priced.book
        return CostExplained(
            total_ms=book.total_s * 1e3,
            alone_ms=_ms(book.alone_s),
            saving_ms=_ms(book.saving_s),
            saving_share=_ratio(book.saving_s, book.alone_s),
            basis=self.priced.whole_basis,
            queries=tuple(self.query_cost(live) for live in self.planned.asked),
        )

    def query_cost(self, live: LiveQuery) -> QueryCostExplained:
        """What joins rows for groups costs each of their users as much; a query over one stream joins nothing."""
        joining = self.joining_by_user.get(live.id, live.id)
        cost = self.priced.book.cost_by_query.get(joining)
        if cost is None:
            return QueryCostExplained(live.name, 0.0, 0.0, None, None, self.priced.whole_basis)
        share_s = cost.share_s / max(list(self.joining_by_user.values()).count(joining), 1)
        return QueryCostExplained(
            live.name,
            _ms(cost.alone_s),
            share_s * 1e3,
            _ratio(share_s, self.priced.book.total_s),
            _ratio(share_s, cost.alone_s),
            self.priced.basis_by_query[joining],
        )

    # Groups

    def groups(self, group: GroupPlan) -> GroupsExplained:
        tables = {table.id for table in group.tables}
        buckets = [meta for meta in self.state.buckets if meta.store in tables]
        joined = {column.name: str(column.expression) for column in self.live_by_id[group.id].query.output}
        return GroupsExplained(
            store=group.id,
            keys=tuple(joined[name] for name, _ in group.keys),
            partial_columns=tuple(column.name for column in group.table.columns),
            details=tuple(table.id.removeprefix(f"{group.id}/") for table in group.details),
            pane_s=None if group.pane is None else group.pane.width_us / 1e6,
            is_bounded=group.pane is not None,
            stored_rows=sum(meta.rows for meta in buckets),
            stored_bytes=sum(meta.size_bytes for meta in buckets),
            queries=tuple(self._taker_names.of([group.id])),
        )


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _change(change: PlanChange) -> ChangeExplained:
    return ChangeExplained(
        batch=change.batch,
        epoch=change.epoch,
        reasons=change.reasons,
        expected_before_ms=_ms(change.expected_before_s),
        expected_after_ms=_ms(change.expected_after_s),
        observed_before_ms=change.observed_before_ms,
        observed_after_ms=change.observed_after_ms,
        input_rows_before=change.rows_before,
        input_rows_after=change.rows_after,
    )
