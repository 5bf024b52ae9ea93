"""From the engine to the records of EXPLAIN for one query: its paths through the shared plan, and who shares them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.engine import Engine
from dovetail.engine.explain.describe_plan import PlanDescriber
from dovetail.engine.explain.records import PathExplained, QueryExplained, SharedStep, SharedStore
from dovetail.plan.live_query import LiveQuery, store_of
from dovetail.plan.probe_tree import ProbeNode
from dovetail.query.expression import Expression
from dovetail.query.growing_groups import growing_groups

NOT_CREATED = "not created"


def describe_query(engine: Engine, query_id: str) -> QueryExplained:
    record = engine.queries.record(query_id)
    return _described(record, record.state.value, PlanDescriber.of(engine, alone_for=(query_id,)))


def describe_preview(engine: Engine, sql: str) -> QueryExplained:
    """Of a query that is not created, as if it were created now."""
    record, planned = engine.plans.previewed(sql)
    plan = PlanDescriber.of_planned(engine, planned, alone_for=(record.id,))
    return _described(replace(record, created_batch=None), NOT_CREATED, plan)


def _described(record: QueryRecord, state: str, plan: PlanDescriber) -> QueryExplained:
    asked = next((live for live in plan.planned.asked if live.id == record.id), None)
    joining = plan.joining_by_user.get(record.id, record.id)
    live = plan.live_by_id.get(joining)
    kept = () if live is None else plan.planned.decisions.intermediates
    return QueryExplained(
        query=record.name,
        sql=record.sql,
        state=state,
        error=record.error,
        created_batch=record.created_batch,
        complete_from=record.answered_from,
        growing_groups=() if asked is None else growing_groups(asked.query),
        stores=() if live is None else tuple(_stores(plan, live, record.name)),
        paths=() if live is None else tuple(_paths(plan, live, record.name)),
        intermediates=tuple(
            plan.intermediate(each, only_for=joining) for each in kept if any(use.query == joining for use in each.uses)
        ),
        groups=plan.groups(plan.plan.group(joining)) if record.id in plan.joining_by_user else None,
        cost=None if asked is None else plan.query_cost(asked),
    )


def _stores(plan: PlanDescriber, live: LiveQuery, name: str) -> Iterator[SharedStore]:
    selections: dict[str, dict[Expression, None]] = {}
    for asked, leg in plan.plan.asked_legs():
        if leg.query == live.id:
            selections.setdefault(asked, {})[leg.selection] = None
    for store_id in sorted(selections):
        store = plan.store(plan.plan.store(store_id), selections[store_id])
        yield SharedStore(store, _others(store.queries, name))


def _paths(plan: PlanDescriber, live: LiveQuery, name: str) -> Iterator[PathExplained]:
    for number, relation in enumerate(live.query.relations):
        store = store_of(relation)
        for rows, tree in plan.plan.asked_trees:
            if tree.start != store or not any((leg.query, leg.start) == (live.id, number) for leg in tree.legs):
                continue
            steps: list[SharedStep] = []
            path: tuple[str, ...] = (store,)
            emits = list(tree.emits)
            for node in _nodes_of(tree.children, live.id, number):
                emits += node.emits
                cost = plan.priced.cost_of(node)
                step = plan.step(node, path, is_followed=False)
                steps.append(SharedStep(step, _others(step.queries, name), cost.share_s * 1e3))
                path = (*path, node.step.target)
            emit = next(each for each in emits if (each.query, each.start) == (live.id, number))
            folded = emit.factorization.side.value if emit.factorization else None
            yield PathExplained(relation.alias, store, tuple(steps), rows, folded, emit.why_built)


def _nodes_of(nodes: Iterable[ProbeNode], query: str, start: int) -> Iterator[ProbeNode]:
    for node in nodes:
        if any((leg.query, leg.start) == (query, start) for leg in node.legs):
            yield node
            yield from _nodes_of(node.children, query, start)


def _others(names: Iterable[str], own: str) -> tuple[str, ...]:
    return tuple(name for name in names if name != own)
