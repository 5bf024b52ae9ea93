"""From one plan to the next: what was decided before is where the search begins (A6).

A created or dropped query leaves the paths of the others as they are, except those that could share with it; once more
than half of the queries are others, all is planned from scratch.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from dovetail.optimizer.joint.plan import JointPlan, ProbePath, Step
from dovetail.optimizer.joint.problem import Problem, SubJoin
from dovetail.optimizer.joint.solvers.flow import Flow, build_flow
from dovetail.optimizer.joint.solvers.ilp import reoptimize, use_useful_partitionings, useful_partitionings
from dovetail.optimizer.joint.solvers.ledger import Ledger

MAX_CHANGED_SHARE = 0.5
MAX_TOUCHED_DEMANDS = 60
"""Starts that are planned anew with a changed query; the exact program ends soon for so many."""

ArcName = tuple[str, SubJoin, SubJoin, SubJoin]


def ledger_of(flow: Flow, known: JointPlan) -> Ledger:
    """The known paths as far as the flow still has them; starts without one take the path that adds least."""
    ledger = Ledger(flow)
    _partition_as(ledger, known)
    arc_by_name: dict[ArcName, int] = {
        (arc.start, arc.joined, flow.stores[arc.target].join, arc.result): number
        for number, arc in enumerate(flow.arcs)
    }
    path_by_owner = {(each.query, path.start): path for each in known.queries for path in each.paths}
    waiting = []
    for number, demand in enumerate(flow.demands):
        if demand.query is None:
            continue
        query = flow.problem.queries[demand.query]
        path = path_by_owner.get((query.name, demand.start))
        arcs = None if path is None else _arcs(path, arc_by_name)
        allowed = {step.arc for step in demand.path_arcs}
        if arcs is None or not allowed.issuperset(arcs) or flow.arcs[arcs[-1]].result != query.join:
            waiting.append(number)
            continue
        ledger.add(number, arcs)
        if ledger.room < 0:
            ledger.remove(number)
            waiting.append(number)
    for number in waiting:
        ledger.route(number)
    _maintain_as(ledger, known, arc_by_name)
    return ledger


def _maintain_as(ledger: Ledger, known: JointPlan, arc_by_name: dict[ArcName, int]) -> None:
    """Intermediates that stay are maintained as before: the paths that add least differ with every figure."""
    path_by_owner = {(each.join, path.start): path for each in known.intermediates for path in each.paths}
    for store, demands in enumerate(ledger.flow.upkeep_demands):
        for number in demands if ledger.users[store] else ():
            demand = ledger.flow.demands[number]
            path = path_by_owner.get((ledger.flow.stores[store].join, demand.start))
            arcs = None if path is None else _arcs(path, arc_by_name)
            if arcs is not None and {step.arc for step in demand.path_arcs}.issuperset(arcs):
                ledger.remove(number)
                ledger.add(number, arcs)


def solve_changed(problem: Problem, known: JointPlan, budget_s: float) -> JointPlan | None:
    """The known plan with only what created and dropped queries touch planned anew; None if too much has changed."""
    deadline = time.perf_counter() + budget_s
    names = {query.name for query in problem.queries}
    known_names = {each.query for each in known.queries}
    created, dropped = names - known_names, known_names - names
    if len(created) + len(dropped) > MAX_CHANGED_SHARE * max(len(names), 1):
        return None
    flow = build_flow(problem)
    ledger = ledger_of(flow, known)
    if created or dropped:
        useful = useful_partitionings(flow)
        use_useful_partitionings(ledger, useful)
        touched = _touched(flow, known, created, dropped)
        if touched:
            reoptimize(ledger, touched, useful, deadline)
    return ledger.plan()


def _touched(flow: Flow, known: JointPlan, created: Collection[str], dropped: Collection[str]) -> list[int]:
    """Starts of created queries, then those of queries that have a join in common with a created or dropped one."""
    edges = {edge for query in flow.problem.queries if query.name in created for edge in query.join.predicates}
    for each in known.queries:
        if each.query in dropped:
            edges |= set(each.paths[0].steps[-1].result.predicates)
    own, near = [], []
    for number, demand in enumerate(flow.demands):
        if demand.query is not None:
            query = flow.problem.queries[demand.query]
            if query.name in created:
                own.append(number)
            elif edges & set(query.join.predicates):
                near.append(number)
    return (own + near)[: max(MAX_TOUCHED_DEMANDS, len(own))]


def _partition_as(ledger: Ledger, known: JointPlan) -> None:
    attribute_by_store = {each.store: each.attribute for each in known.partitionings}
    for number, store in enumerate(ledger.flow.stores):
        attribute = attribute_by_store.get(store.join)
        if attribute in store.partitionings:
            ledger.partition(number, store.partitionings.index(attribute))


def _arcs(path: ProbePath, arc_by_name: dict[ArcName, int]) -> tuple[int, ...] | None:
    arcs = [arc_by_name.get(_name(step)) for step in path.steps]
    found = tuple(arc for arc in arcs if arc is not None)
    return found if len(found) == len(arcs) else None


def _name(step: Step) -> ArcName:
    return step.start, step.joined, step.target, step.result
