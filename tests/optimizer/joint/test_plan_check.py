"""The check refuses each kind of broken plan; records refuse wrong input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.paper_costs.clash import PapersCost, PapersStatistics
from dovetail.core.errors import QueryError
from dovetail.optimizer.joint.plan import InvalidPlan, JointPlan
from dovetail.optimizer.joint.problem import (
    Attribute,
    Predicate,
    Problem,
    QueryGraph,
    SubJoin,
    equality,
    is_connected,
    query_graph,
)
from dovetail.optimizer.joint.solvers.solve import solve

RS, ST, TU = equality("R.a", "S.a"), equality("S.b", "T.b"), equality("T.c", "U.c")


def chain(**options: object) -> Problem:
    statistics = PapersStatistics(
        {"R": 1000.0, "S": 10.0, "T": 10.0, "U": 1000.0},
        dict.fromkeys((RS, ST, TU), 0.01),
        dict.fromkeys("RSTU", 3),
    )
    return Problem((query_graph("q", [RS, ST, TU]),), PapersCost(statistics), **options)  # type: ignore[arg-type]


def without_intermediates(plan: JointPlan) -> JointPlan:
    return replace(plan, intermediates=())


def without_a_path(plan: JointPlan) -> JointPlan:
    query = plan.queries[0]
    return replace(plan, queries=(replace(query, paths=query.paths[1:]),))


def with_a_shorter_path(plan: JointPlan) -> JointPlan:
    query = plan.queries[0]
    first = query.paths[0]
    return replace(plan, queries=(replace(query, paths=(replace(first, steps=first.steps[:-1]), *query.paths[1:])),))


def with_other_partitionings(plan: JointPlan) -> JointPlan:
    attribute = Attribute("S", "other")
    moved = tuple(
        replace(each, attribute=attribute) if each.store.relations == ("S",) else each for each in plan.partitionings
    )
    return replace(plan, partitionings=moved)


def with_a_lower_cost(plan: JointPlan) -> JointPlan:
    return replace(plan, cost=plan.cost - 1)


def without_queries(plan: JointPlan) -> JointPlan:
    return replace(plan, queries=())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_intermediates, "not maintained"),
        (without_a_path, "one path per start"),
        (with_a_shorter_path, "ends before"),
        (with_other_partitionings, "another partitioning"),
        (with_a_lower_cost, "states cost"),
        (without_queries, "not the problem's queries"),
    ],
)
def test_damaged_plan_is_refused(damage: Callable[[JointPlan], JointPlan], message: str) -> None:
    problem = chain()
    plan = solve(problem, 5.0).plan
    assert plan.intermediates
    plan.check(problem)
    with pytest.raises(InvalidPlan, match=message):
        damage(plan).check(problem)


def test_plan_with_intermediates_is_refused_where_none_are_allowed() -> None:
    plan = solve(chain(), 5.0).plan
    with pytest.raises(InvalidPlan, match="may not use"):
        plan.check(chain(may_materialize=False))


def test_plan_beyond_the_storage_budget_is_refused() -> None:
    plan = solve(chain(), 5.0).plan
    with pytest.raises(InvalidPlan, match="storage budget"):
        plan.check(chain(storage_budget=2020.0))


def test_relations_without_a_predicate_are_no_join() -> None:
    assert not is_connected("RST", [RS])
    with pytest.raises(QueryError, match="cross product"):
        SubJoin(("R", "S", "T"), (RS,))


def test_wrong_records_are_refused() -> None:
    with pytest.raises(QueryError):
        Predicate(Attribute("S", "a"), Attribute("R", "a"))
    with pytest.raises(QueryError):
        SubJoin(("S", "R"), (RS,))
    with pytest.raises(QueryError):
        QueryGraph("q", SubJoin(("R",)))
    with pytest.raises(QueryError):
        replace(chain(), queries=(query_graph("q", [RS]), query_graph("q", [ST])))
    with pytest.raises(QueryError):
        chain(storage_budget=-1.0)
    with pytest.raises(QueryError):
        PapersStatistics({"R": 1.0}, {RS: 2.0})


def test_same_relations_joined_differently_are_not_shared() -> None:
    other = equality("R.x", "S.x")
    statistics = PapersStatistics({"R": 100.0, "S": 100.0}, {RS: 0.01, other: 0.01})
    twice = Problem((query_graph("q1", [RS]), query_graph("q2", [RS])), PapersCost(statistics))
    differently = Problem((query_graph("q1", [RS]), query_graph("q2", [other])), PapersCost(statistics))
    assert solve(twice, 5.0).plan.cost == 200
    assert solve(differently, 5.0).plan.cost == 400


def probing_starts(plan: JointPlan) -> set[str]:
    return {path.start for path in plan.paths() for step in path.steps if not step.target.is_base}


def test_only_starts_that_rank_above_the_members_probe_an_intermediate() -> None:
    assert probing_starts(solve(chain(), 5.0).plan) == {"R", "U"}
    ranked = chain(rank_order=("R", "S", "T", "U"))
    plan = solve(ranked, 5.0).plan
    assert "U" in probing_starts(plan)
    for path in plan.paths():
        assert all(step.target.is_base or path.start > max(step.target.relations) for step in path.steps)
    with pytest.raises(InvalidPlan, match="may not use"):
        solve(chain(), 5.0).plan.check(ranked)


def test_every_relation_has_a_rank_or_none_has() -> None:
    with pytest.raises(QueryError, match="no rank"):
        chain(rank_order=("R", "S"))


def test_a_query_probes_only_the_intermediates_it_may() -> None:
    problem = chain()
    (query,) = problem.queries
    none = replace(problem, queries=(replace(query, intermediates=frozenset()),))
    assert probing_starts(solve(none, 5.0).plan) == set()
    only = replace(problem, queries=(replace(query, intermediates=frozenset({query.join.within("ST")})),))
    targets = {step.target.relations for step in solve(only, 5.0).plan.steps() if not step.target.is_base}
    assert targets == {("S", "T")}


def test_intermediates_nest_only_if_they_may() -> None:
    statistics = PapersStatistics(
        {"R": 1e6, "S": 1e4, "T": 10.0, "U": 10.0}, {RS: 1e-4, ST: 1e-3, TU: 1e-3}, dict.fromkeys("RSTU", 1)
    )
    problem = Problem((query_graph("q", [RS, ST, TU]),), PapersCost(statistics))

    def nests(plan: JointPlan) -> bool:
        return any(not step.target.is_base for kept in plan.intermediates for path in kept.paths for step in path.steps)

    assert nests(solve(problem, 5.0).plan)
    flat = replace(problem, may_nest=False)
    assert not nests(solve(flat, 5.0).plan)
    with pytest.raises(InvalidPlan, match="may not use"):
        solve(problem, 5.0).plan.check(flat)
