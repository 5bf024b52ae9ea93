from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.joint.decide_jointly import JointOptions, decide_jointly, joint_view
from dovetail.optimizer.joint.plan import Intermediate, JointPlan, ProbePath, QueryPaths, Step
from dovetail.optimizer.joint.problem import SubJoin
from dovetail.optimizer.joint.view import JointView
from dovetail.optimizer.passes.choose_probe_orders import edge_of
from dovetail.optimizer.passes.share_probe_prefixes import greedy_orders
from dovetail.optimizer.pricing.cost_alone import costs_alone, part_of
from dovetail.optimizer.pricing.cost_basis import cost_basis
from dovetail.optimizer.pricing.share_costs import CostBook, plan_cost, share_costs
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, TIMESTAMP
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.estimate import Origin
from tests.support.asserts import open_session
from tests.support.generators.cases import CHAINS, random_case

COLUMNS = (("a", BIGINT), ("b", BIGINT), ("c", BIGINT), ("ts", TIMESTAMP))
STREAMS = {name: Stream(name, COLUMNS, "ts") for name in "rstu"}
OPTIONS = JointOptions(5.0)
ORDERS_ONLY = replace(OPTIONS, may_materialize=False)
STATS = StatsCatalog(
    rows_in_window=dict.fromkeys("rstu", 1000.0), key_match={"r.a=s.a": 0.001, "s.b=t.b": 0.001, "t.c=u.c": 0.001}
)
PAIR = "SELECT r.a FROM r JOIN s ON r.a = s.a"
CHAIN = f"{PAIR} JOIN t ON s.b = t.b"
LONG = f"{CHAIN} JOIN u ON t.c = u.c"


def live(name: str, sql: str) -> LiveQuery:
    return LiveQuery(name, name, compile_sql(sql, STREAMS, timezone="UTC"))


def book_of(*queries: LiveQuery, stats: StatsCatalog = STATS, options: JointOptions = ORDERS_ONLY) -> CostBook:
    """Of greedy orders."""
    view = joint_view(queries, stats, options)
    plan = view.plan_of(greedy_orders(queries, stats))
    return share_costs(view, plan, costs_alone(view, plan, stats))


def test_equal_queries_pay_equal_parts_of_what_one_would_cost() -> None:
    book = book_of(live("one", PAIR), live("other", PAIR), live("third", PAIR))
    (alone,) = {cost.alone_s for cost in book.queries}
    assert alone == pytest.approx(book.total_s)
    assert [cost.share_s for cost in book.queries] == pytest.approx([book.total_s / 3] * 3)
    assert book.saving_s == pytest.approx(2 * book.total_s)


def test_a_step_costs_what_the_model_says_and_names_its_rows() -> None:
    view = joint_view((live("q", PAIR),), STATS, ORDERS_ONLY)
    plan = view.plan_of(greedy_orders((live("q", PAIR),), STATS))
    for cost in share_costs(view, plan, {}).steps:
        assert cost.cost_s == view.cost_model.step_cost(cost.step)
        assert (cost.probing_rows, cost.found_rows) == (100.0, pytest.approx(100.0))


def test_steps_that_run_as_one_are_paid_once_but_for_their_rows() -> None:
    queries = live("one", PAIR), live("other", f"{PAIR} AND r.b = s.b")
    view = joint_view(queries, STATS, ORDERS_ONLY)
    plan = view.plan_of(greedy_orders(queries, STATS))
    by_start = [[step for step in plan.steps() if step.start == start] for start in "rs"]
    assert [len(steps) for steps in by_start] == [2, 2]
    apart, together = share_costs(view, plan, {}), share_costs(view, plan, {}, run_as_one=by_start)
    fixed_s = view.cost_model.fixed_cost(by_start[0][0])
    assert together.total_s == pytest.approx(apart.total_s - 2 * fixed_s)
    assert [cost.users for cost in together.steps] == [("one", "other")] * 2
    assert together.cost_by_step.keys() == apart.cost_by_step.keys()
    assert sum(cost.probing_rows for cost in together.steps) == sum(cost.probing_rows for cost in apart.steps)


def test_alone_a_query_counts_its_own_selection_only() -> None:
    few, all_rows = live("few", f"{PAIR} WHERE r.c > 1"), live("all", PAIR)
    selection = {("r", "gt(row.c, 1:bigint)"): 0.01}
    stats = replace(
        STATS, rows_in_window=dict.fromkeys("rs", 1e7), key_match={"r.a=s.a": 1e-7}, selection_share=selection
    )
    book = book_of(few, all_rows, stats=stats)
    cost = book.cost_by_query["few"]
    assert cost.alone_s == pytest.approx(book_of(few, stats=stats).total_s)
    assert cost.alone_s < cost.share_s, "it shares a step that is large because of the other query"


def test_a_greedy_order_that_is_not_the_best_is_not_what_the_query_costs_alone() -> None:
    query = live("q", LONG)
    stats = replace(STATS, key_match={"r.a=s.a": 0.5, "s.b=t.b": 0.001, "t.c=u.c": 0.001})
    view = joint_view((query,), stats, ORDERS_ONLY)
    worst = view.plan_of({("q", s): tuple(o) for s, o in (("r", "rstu"), ("s", "srtu"), ("t", "tsru"), ("u", "utsr"))})
    alone = costs_alone(view, worst, stats)["q"]
    assert alone < plan_cost(view.cost_model, worst)
    assert alone == pytest.approx(decide_jointly((query,), STREAMS, stats, ORDERS_ONLY).cost)


def test_nobody_asked_is_unknown() -> None:
    view = joint_view((live("q", PAIR),), STATS, ORDERS_ONLY)
    book = share_costs(view, view.plan_of(greedy_orders((live("q", PAIR),), STATS)), {})
    assert (book.alone_s, book.saving_s) == (None, None)
    assert "alone unknown" in str(book.text_tree())


def nested() -> tuple[JointView, JointPlan]:
    """q probes (s+t+u) from r; that is maintained through (t+u), which no query probes itself."""
    query = live("q", LONG)
    view = joint_view((query,), STATS, OPTIONS)
    join = view.queries[0].graph.join

    def path(*stores: str) -> ProbePath:
        joined = SubJoin((stores[0],))
        steps = []
        for store in stores[1:]:
            target = join.within(store)
            result = join.within(joined.relations + target.relations)
            steps.append(Step(stores[0], joined, target, None, result))
            joined = result
        return ProbePath(stores[0], tuple(steps))

    paths = (path("r", "stu"), path("s", "r", "t", "u"), path("t", "u", "s", "r"), path("u", "t", "s", "r"))
    large = Intermediate(join.within("stu"), (path("s", "tu"), path("t", "u", "s"), path("u", "t", "s")))
    small = Intermediate(join.within("tu"), (path("t", "u"), path("u", "t")))
    return view, JointPlan((QueryPaths("q", paths),), (large, small), (), 0.0)


def test_who_uses_an_intermediate_uses_what_maintains_it() -> None:
    view, plan = nested()
    book = share_costs(view, plan, {"q": 1.0})
    assert {cost.users for cost in book.parts} == {("q",)}
    assert book.queries[0].share_s == pytest.approx(plan_cost(view.cost_model, plan))
    assert set(part_of(plan, "q").intermediates) == set(plan.intermediates)


def test_an_intermediate_that_nobody_uses_is_refused_unless_somebody_waits_for_it() -> None:
    query = live("q", CHAIN)
    view = joint_view((query,), STATS, OPTIONS)
    paths = view.plan_of(greedy_orders((query,), STATS))
    join = view.queries[0].graph.join.within("st")
    upkeep = tuple(
        ProbePath(one, (Step(one, SubJoin((one,)), SubJoin((other,)), None, join),)) for one, other in ("st", "ts")
    )
    plan = replace(paths, intermediates=(Intermediate(join, upkeep),))
    with pytest.raises(ValueError, match="somebody's"):
        share_costs(view, plan, {})
    (cost,) = share_costs(view, plan, {}, {join: ["q"]}).queries
    assert cost.share_s == pytest.approx(plan_cost(view.cost_model, plan))


@pytest.mark.parametrize("seed", range(12))
def test_shares_add_up_to_the_cost_of_the_plan(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    case = random_case(seed, CHAINS)
    session = open_session(case, tmp_path)
    for query in case.queries:
        session.create_query(query.sql, query.name)
    queries = session.engine.plans.planned().queries
    session.close()
    edges = {edge_of(each.query, equality) for each in queries for equality in each.query.equalities}
    stats = StatsCatalog(
        rows_in_window={stream: rng.choice([10.0, 1e3, 1e5]) for stream in sorted(session.engine.streams.by_name)},
        key_match={edge: rng.choice([1e-6, 1e-4, 1e-2]) for edge in sorted(edges)},
    )
    decision = decide_jointly(queries, session.engine.streams.by_name, stats, JointOptions(0.3))
    view = joint_view(queries, stats, JointOptions(0.3))
    alone = costs_alone(view, decision.plan, stats)
    book = share_costs(view, decision.plan, alone)
    assert book.total_s == pytest.approx(decision.cost)
    assert math.fsum(cost.share_s for cost in book.queries) == pytest.approx(decision.cost)
    for each in queries:
        own = joint_view((each,), stats, JointOptions(0.3)).cost_model
        assert alone[each.id] <= plan_cost(own, part_of(decision.plan, each.id)) * (1 + 1e-9)


def test_a_step_is_known_as_little_as_the_least_known_of_its_figures() -> None:
    given = live("given", PAIR)
    view = joint_view((given,), STATS, ORDERS_ONLY)
    step = view.plan_of(greedy_orders((given,), STATS)).steps()[0]
    basis = cost_basis(view.queries, STATS)
    assert basis.live == {"r": Origin.GIVEN, "s": Origin.GIVEN}
    assert basis.of(step) is Origin.ASSUMED, "nobody counted what a batch brings"
    counted = replace(basis, batch={"r": Origin.EXACT, "s": Origin.EXACT})
    assert counted.of(step) is Origin.EXACT
    (predicate,) = basis.predicate
    assert replace(counted, predicate={predicate: Origin.ESTIMATED}).of(step) is Origin.ESTIMATED
