from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.joint.decide_jointly import (
    JointDecision,
    JointOptions,
    decide_changed,
    decide_jointly,
    with_price_of_state,
)
from dovetail.optimizer.passes.choose_probe_orders import edge_of, edges_between
from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, TIMESTAMP
from dovetail.stats.catalog import ASSUMED_ROW_BYTES, StatsCatalog
from tests.support.asserts import check_case, open_session
from tests.support.cases import EngineCase
from tests.support.generators.cases import CHAINS, random_case

COLUMNS = (("a", BIGINT), ("b", BIGINT), ("c", BIGINT), ("ts", TIMESTAMP))
STREAMS = {name: Stream(name, COLUMNS, "ts") for name in "rstuvwxy"}
BUDGET_S = 5.0


def live(name: str, sql: str) -> LiveQuery:
    return LiveQuery(name, name, compile_sql(sql, STREAMS, timezone="UTC"))


Q1 = live("q1", "SELECT r.a FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b")
Q2 = live("q2", "SELECT s.a FROM s JOIN t ON s.b = t.b JOIN u ON t.c = u.c")
# The second example of section V of the CLASH paper: 100 rows each, s joined with t gives 150, the others 100.
PAPER = StatsCatalog(
    rows_in_window=dict.fromkeys("rstu", 100.0),
    key_match={"r.a=s.a": 0.01, "s.b=t.b": 0.015, "t.c=u.c": 0.01},
)


ORDERS_ONLY = JointOptions(BUDGET_S, may_materialize=False)


def decide(*queries: LiveQuery, stats: StatsCatalog = PAPER, options: JointOptions = ORDERS_ONLY) -> JointDecision:
    return decide_jointly(queries, STREAMS, stats, options)


def test_alone_each_query_avoids_the_larger_join_first() -> None:
    assert decide(Q1).decisions.orders["q1", "s"] == ("s", "r", "t")
    assert decide(Q2).decisions.orders["q2", "t"] == ("t", "u", "s")


def test_together_they_take_the_step_that_the_other_needs_anyway() -> None:
    orders = decide(Q1, Q2).decisions.orders
    assert orders["q1", "s"] == ("s", "t", "r")
    assert orders["q2", "t"] == ("t", "s", "u")


def test_shared_orders_share_steps_in_the_plan() -> None:
    decisions = decide(Q1, Q2).decisions
    placement = even_placement(8, 2)
    together = plan_queries((Q1, Q2), STREAMS, placement, epoch=1, stats=PAPER, decisions=decisions)
    greedy = plan_queries((Q1, Q2), STREAMS, placement, epoch=1, stats=PAPER)
    assert sum(1 for tree in together.trees for _ in tree.walk()) < sum(1 for tree in greedy.trees for _ in tree.walk())


# A fast stream joins a chain of slow ones that seldom match one another.
FAST_R = StatsCatalog(
    rows_in_window={"r": 1e6, "s": 1e3, "t": 1e3, "u": 1e3},
    key_match={"r.a=s.a": 1e-3, "s.b=t.b": 1e-5, "t.c=u.c": 1e-4},
)
CHAIN = live("chain", "SELECT r.a FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b JOIN u ON t.c = u.c")


def test_a_fast_start_probes_what_the_slow_ones_keep() -> None:
    decision = decide(CHAIN, stats=FAST_R, options=JointOptions(BUDGET_S))
    (kept,) = decision.decisions.intermediates
    assert kept.intermediate.streams == ("s", "t", "u")
    assert [(use.query, use.wanted_starts) for use in kept.uses] == [("chain", ("r",))]
    assert decision.decisions.rank_order[-1] == "r", "it must rank above all members"
    assert decision.cost < decide(CHAIN, stats=FAST_R).cost


def test_who_opts_out_probes_no_intermediate() -> None:
    decision = decide(replace(CHAIN, may_materialize=False), stats=FAST_R, options=JointOptions(BUDGET_S))
    assert decision.decisions.intermediates == ()


def test_a_budget_below_the_base_stores_forbids_intermediates() -> None:
    base = sum(FAST_R.rows_in_window.values()) * ASSUMED_ROW_BYTES
    assert decide(CHAIN, stats=FAST_R, options=JointOptions(BUDGET_S, storage_budget=2 * base)).decisions.intermediates
    tight = JointOptions(BUDGET_S, storage_budget=base)
    assert decide(CHAIN, stats=FAST_R, options=tight).decisions.intermediates == ()


def test_a_created_query_leaves_the_others_their_paths() -> None:
    one, other = live("one", Q1.query.sql), live("other", Q2.query.sql)
    apart = live("apart", "SELECT v.a FROM v JOIN w ON v.a = w.a JOIN x ON w.b = x.b")
    known = decide_jointly((one, other, apart), STREAMS, PAPER, ORDERS_ONLY)
    new = live("new", "SELECT v.a FROM v JOIN w ON v.a = w.a JOIN y ON w.c = y.c")
    changed = decide_changed((one, other, apart, new), STREAMS, PAPER, ORDERS_ONLY, known)
    assert changed is not None
    before, after = known.decisions.orders, changed.decisions.orders
    assert {key: after[key] for key in before if key[0] != "apart"} == {
        k: o for k, o in before.items() if k[0] != "apart"
    }
    assert {start for query, start in after if query == "new"} == {"v", "w", "y"}


def test_more_than_half_changed_is_planned_from_scratch() -> None:
    known = decide(Q1)
    assert decide_changed((Q2,), STREAMS, PAPER, ORDERS_ONLY, known) is None


@pytest.mark.parametrize("seed", range(20))
def test_no_joint_plan_costs_more_than_the_greedy_one(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    queries = running_queries(random_case(seed, CHAINS), tmp_path)
    streams = sorted({relation.stream for query in queries for relation in query.query.relations})
    edges = {edge_of(query.query, equality) for query in queries for equality in query.query.equalities}
    stats = StatsCatalog(
        rows_in_window={stream: rng.choice([10.0, 1e3, 1e5]) for stream in streams},
        key_match={edge: rng.choice([1e-6, 1e-4, 1e-2]) for edge in sorted(edges)},
    )
    decision = decide_jointly(queries, stream_map(queries), stats, JointOptions(0.3))
    assert decision.cost <= decision.greedy_cost * (1 + 1e-9)
    decision.plan.check(decision.view.problem(decision.decisions.rank_order))


@pytest.mark.parametrize("seed", range(6))
def test_orders_are_complete_and_without_cross_products(seed: int, tmp_path: Path) -> None:
    queries = running_queries(random_case(seed, CHAINS), tmp_path)
    orders = decide_jointly(queries, stream_map(queries), StatsCatalog(), ORDERS_ONLY).decisions.orders
    assert len(orders) == sum(len(query.query.relations) for query in queries)
    query_by_id = {query.id: query.query for query in queries}
    for (name, start), order in orders.items():
        query = query_by_id[name]
        assert order[0] == start
        assert sorted(order) == sorted(relation.alias for relation in query.relations)
        assert all(edges_between(query, list(order[:n]), order[n]) for n in range(1, len(order)))


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_batch_sql_under_joint_orders(seed: int) -> None:
    keeping = ("never", "by cost", "always")[seed % 3]
    check_case(replace(random_case(seed, CHAINS), plan_seed=None), optimizer="joint", keep_intermediates=keeping)


def running_queries(case: EngineCase, folder: Path) -> tuple[LiveQuery, ...]:
    session = open_session(case, folder)
    for query in case.queries:
        session.create_query(query.sql, query.name)
    queries = session.engine.plans.planned().asked
    session.close()
    return queries


def stream_map(queries: tuple[LiveQuery, ...]) -> dict[str, Stream]:
    """The case's streams as far as a decision looks at them: names and event times."""
    return {r.stream: Stream(r.stream, (("ts", TIMESTAMP),), "ts") for q in queries for r in q.query.relations}


def test_state_has_a_price_where_the_units_name_none() -> None:
    options = with_price_of_state((CHAIN,), FAST_R, JointOptions(BUDGET_S))
    assert options.units.byte > 0
    named = replace(options, units=replace(options.units, byte=7.0))
    assert with_price_of_state((CHAIN,), FAST_R, named).units.byte == 7.0
    assert decide(CHAIN, stats=FAST_R, options=options).decisions.intermediates, "a small one still pays"
    dear = replace(options, units=replace(options.units, byte=1.0))
    assert decide(CHAIN, stats=FAST_R, options=dear).decisions.intermediates == ()
