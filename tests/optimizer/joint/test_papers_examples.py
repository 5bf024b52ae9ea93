"""The worked examples of the papers, literally: CLASH section V.1 with Fig. 3, V.2, Fig. 4; MultiStream's SCost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.paper_costs.clash import PapersCost, PapersStatistics
from dovetail.optimizer.joint.plan import JointPlan, ProbePath, QueryPaths, Step
from dovetail.optimizer.joint.problem import Attribute, Problem, SubJoin, equality, query_graph
from dovetail.optimizer.joint.solvers.flow import Flow, build_flow
from dovetail.optimizer.joint.solvers.greedy import choose_greedily
from dovetail.optimizer.joint.solvers.ilp import useful_partitionings
from dovetail.optimizer.joint.solvers.ilp_model import IlpModel
from dovetail.optimizer.joint.solvers.ledger import Ledger
from dovetail.optimizer.joint.solvers.solve import solve

RS_B, ST_C, TU_D = equality("R.b", "S.b"), equality("S.c", "T.c"), equality("T.d", "U.d")
TASKS = 5


def figure_3(parallelism: int = TASKS) -> Problem:
    statistics = PapersStatistics(
        dict.fromkeys("RSTU", 100.0),
        {RS_B: 0.01, ST_C: 0.015, TU_D: 0.01},
        dict.fromkeys("RSTU", parallelism),
    )
    queries = (query_graph("q1", [RS_B, ST_C]), query_graph("q2", [ST_C, TU_D]))
    return Problem(queries, PapersCost(statistics))


def example_2() -> Problem:
    """Only orders: neither intermediates nor partitioning, 100 tuples each, 150 from S x T, 100 from the others."""
    return replace(figure_3(), may_materialize=False, may_partition=False)


def short(join: SubJoin) -> str:
    return "".join(join.relations)


def orders(flow: Flow, owner: str) -> dict[str, set[str]]:
    """Per start the candidate orders of a query, or of an intermediate by its relations, written as in the paper."""
    found: dict[str, set[str]] = {}
    for demand in flow.demands:
        if demand.query is not None:
            name = flow.problem.queries[demand.query].name
        else:
            assert demand.intermediate is not None
            name = short(flow.stores[demand.intermediate].join)
        if name == owner:
            for path in flow.paths(demand):
                targets = [short(flow.stores[flow.arcs[arc].target].join) for arc in path]
                found.setdefault(demand.start, set()).add(",".join([demand.start, *targets]))
    return found


def test_figure_3_materializable_intermediates_are_rs_st_tu() -> None:
    assert {short(store.join) for store in build_flow(figure_3()).stores} == {"R", "S", "T", "U", "RS", "ST", "TU"}


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("q1", {"R": {"R,S,T", "R,ST"}, "S": {"S,T,R", "S,R,T"}, "T": {"T,S,R", "T,RS"}}),
        ("q2", {"S": {"S,T,U", "S,TU"}, "T": {"T,U,S", "T,S,U"}, "U": {"U,T,S", "U,ST"}}),
        ("RS", {"R": {"R,S"}, "S": {"S,R"}}),
        ("ST", {"S": {"S,T"}, "T": {"T,S"}}),
        ("TU", {"T": {"T,U"}, "U": {"U,T"}}),
    ],
)
def test_figure_3_candidate_orders(owner: str, expected: dict[str, set[str]]) -> None:
    assert orders(build_flow(figure_3()), owner) == expected


def test_figure_3_partitionings_are_attributes_that_join_to_the_outside() -> None:
    found = {short(each.join): {a.name for a in each.partitionings if a} for each in build_flow(figure_3()).stores}
    assert found == {
        "R": {"b"},
        "S": {"b", "c"},
        "T": {"c", "d"},
        "U": {"d"},
        "RS": {"c"},
        "ST": {"b", "d"},
        "TU": {"c"},
    }


def test_figure_3_has_six_partitioned_orders_for_q1_from_r() -> None:
    flow = build_flow(figure_3())
    demand = next(each for each in flow.demands if each.query == 0 and each.start == "R")
    decorated = set()
    for path in flow.paths(demand):
        texts = [""]
        for arc in path:
            store = flow.stores[flow.arcs[arc].target]
            texts = [f"{t},{short(store.join)}[{a.name}]" for t in texts for a in store.partitionings if a]
        decorated.update(f"R{text}" for text in texts)
    assert decorated == {"R,S[b],T[c]", "R,S[c],T[c]", "R,S[b],T[d]", "R,S[c],T[d]", "R,ST[b]", "R,ST[d]"}


def test_figure_3_order_over_an_unknown_attribute_is_broadcast() -> None:
    problem = figure_3()
    q1 = problem.queries[0].join
    joined, target = q1.within("RS"), q1.within("T")
    by_c = Step("R", joined, target, Attribute("T", "c"), q1)
    by_d = Step("R", joined, target, Attribute("T", "d"), q1)
    assert problem.cost_model.step_cost(by_c) == 50
    assert problem.cost_model.step_cost(by_d) == 50 * TASKS


def is_allowed(model: IlpModel, values: list[float]) -> bool:
    lp = model.program._as_lp()
    sums = np.add.reduceat(
        np.asarray(lp.a_matrix_.value_) * np.take(values, lp.a_matrix_.index_), lp.a_matrix_.start_[:-1]
    )
    return bool(np.all(sums >= np.asarray(lp.row_lower_) - 1e-9) and np.all(sums <= np.asarray(lp.row_upper_) + 1e-9))


def test_figure_3_constraints_allow_one_order_and_only_maintained_intermediates() -> None:
    """sigma_5 = R,ST[b] is allowed with both orders of S+T (2, 3); not without one, nor beside another order (1), nor
    without paying its step (4).
    """
    flow = build_flow(figure_3())
    everything = [list(range(len(store.partitionings))) for store in flow.stores]
    arc_by_text = {
        f"{arc.start}:{short(arc.joined)},{short(flow.stores[arc.target].join)}": n for n, arc in enumerate(flow.arcs)
    }
    from_r = next(n for n, each in enumerate(flow.demands) if each.query == 0 and each.start == "R")
    st = next(n for n, store in enumerate(flow.stores) if short(store.join) == "ST")
    state = Ledger(flow)
    state.add(from_r, (arc_by_text["R:R,ST"],))
    model = IlpModel(everything, Ledger(flow))
    model.add_choices(range(len(flow.stores)))
    for number in (from_r, *flow.upkeep_demands[st]):
        model.add_demand(number)
    sigma_5 = model.start_values(state.snapshot())
    assert is_allowed(model, sigma_5)

    def changed(column: int, value: float) -> list[float]:
        return [value if number == column else old for number, old in enumerate(sigma_5)]

    s_to_t = model.path_column[flow.upkeep_demands[st][0], arc_by_text["S:S,T"], 0]
    r_to_s = model.path_column[from_r, arc_by_text["R:R,S"], 0]
    assert sigma_5[s_to_t] == 1
    assert not is_allowed(model, changed(s_to_t, 0.0))
    assert not is_allowed(model, changed(r_to_s, 1.0))
    assert not is_allowed(model, changed(model.step_column[arc_by_text["R:R,ST"], 0], 0.0))


def test_example_2_costs_475_each_and_950_in_total_alone() -> None:
    problem = example_2()
    alone = [solve(replace(problem, queries=(query,)), 5.0) for query in problem.queries]
    assert [each.plan.cost for each in alone] == pytest.approx([475, 475])
    assert {str(path) for path in alone[0].plan.paths()} == {"R -> S -> T", "S -> R -> T", "T -> S -> R"}
    assert "T -> U -> S" in {str(path) for path in alone[1].plan.paths()}


def test_example_2_together_takes_the_locally_worse_orders() -> None:
    solution = solve(example_2(), 5.0)
    paths = {each.query: {str(path) for path in each.paths} for each in solution.plan.queries}
    assert paths["q1"] == {"R -> S -> T", "S -> T -> R", "T -> S -> R"}
    assert paths["q2"] == {"S -> T -> U", "T -> S -> U", "U -> T -> S"}
    assert solution.plan.cost == pytest.approx(150 + 100 + 75 + 75 + 100 + 75 + 75 + 150)
    assert solution.is_optimal


def test_example_2_worse_order_costs_175_alone_and_adds_75_to_the_other_query() -> None:
    plan = solve(example_2(), 5.0).plan
    cost_of = example_2().cost_model.step_cost
    from_s = next(path for path in plan.queries[0].paths if path.start == "S")
    others = {step for path in plan.queries[1].paths for step in path.steps}
    assert [cost_of(step) for step in from_s.steps] == pytest.approx([100, 75])
    assert [cost_of(step) for step in from_s.steps if step not in others] == pytest.approx([75])


def test_intermediate_is_kept_where_it_pays_and_only_there() -> None:
    problem = replace(figure_3(parallelism=1), may_partition=False)
    with_intermediates = solve(problem, 5.0)
    without = solve(replace(problem, may_materialize=False), 5.0)
    assert {short(each.join) for each in with_intermediates.plan.intermediates} >= {"ST"}
    assert with_intermediates.plan.cost < without.plan.cost
    # S and T join to 9,000 rows, yet R -> S+T ships only R's: what is stored is limited by the budget alone.
    assert solve(replace(problem, storage_budget=400.0), 5.0).plan.intermediates == ()


def test_query_that_opts_out_probes_base_relations_only() -> None:
    problem = figure_3(parallelism=1)
    q1, q2 = problem.queries
    plan = solve(replace(problem, queries=(replace(q1, may_materialize=False), q2)), 5.0).plan
    assert all(step.target.is_base for path in plan.queries[0].paths for step in path.steps)
    assert any(not step.target.is_base for path in plan.queries[1].paths for step in path.steps)


def test_storage_cost_is_rows_of_base_relations_and_of_inner_joins() -> None:
    """MultiStream Eq. 3: four times 100, and 150 for S x T; a budget of 550 has room for exactly that."""
    problem = replace(figure_3(), storage_budget=550.0)
    assert problem.room_for_intermediates() == 150
    assert problem.cost_model.stored(problem.queries[0].join.within("ST")) == 150


def test_figure_4_orders_with_equal_first_steps_share_a_branch() -> None:
    """Three orders from R: two begin with S[d] and fork after it, the third goes elsewhere."""
    rs, st, su, rv = (equality(*pair) for pair in (("R.d", "S.d"), ("S.e", "T.e"), ("S.f", "U.f"), ("R.g", "V.g")))
    joins = {"q1": [rs, st], "q2": [rs, su], "q3": [rv]}
    attribute = {"S": "d", "T": "e", "U": "f", "V": "g"}

    def path(name: str, *targets: str) -> QueryPaths:
        join = query_graph(name, joins[name]).join
        steps, joined = [], SubJoin(("R",))
        for target in targets:
            result = join.within((*joined.relations, target))
            steps.append(Step("R", joined, SubJoin((target,)), Attribute(target, attribute[target]), result))
            joined = result
        return QueryPaths(name, (ProbePath("R", tuple(steps)),))

    plan = JointPlan((path("q1", "S", "T"), path("q2", "S", "U"), path("q3", "V")), (), (), 0.0)
    assert sorted(step.target_text for step in plan.steps()) == ["S[S.d]", "T[T.e]", "U[U.f]", "V[V.g]"]


def test_useless_partitionings_are_left_out_of_the_program() -> None:
    one_task, five_tasks = build_flow(figure_3(parallelism=1)), build_flow(figure_3())
    assert all(len(choices) == 1 for choices in useful_partitionings(one_task))
    useful = dict(zip((short(s.join) for s in five_tasks.stores), useful_partitionings(five_tasks), strict=True))
    assert {name for name, choices in useful.items() if len(choices) == 2} == {"S", "T", "ST"}


def test_greedy_does_not_look_back_but_is_never_below_the_optimum() -> None:
    problem = example_2()
    greedy = choose_greedily(build_flow(problem)).plan()
    greedy.check(problem)
    assert greedy.cost >= solve(problem, 5.0).plan.cost
