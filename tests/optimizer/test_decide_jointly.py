from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.choose_probe_orders import edges_between
from dovetail.optimizer.decide_jointly import decide_orders, jointly
from dovetail.optimizer.live_query import LiveQuery
from dovetail.optimizer.plan_queries import plan_queries
from dovetail.plan.shared_plan import even_placement
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, TIMESTAMP
from dovetail.stats.catalog import StatsCatalog
from dovetail.testing.asserts import check_case, open_session
from dovetail.testing.generators import CHAINS, random_case

COLUMNS = (("a", BIGINT), ("b", BIGINT), ("c", BIGINT), ("ts", TIMESTAMP))
STREAMS = {name: Stream(name, COLUMNS, "ts") for name in "rstu"}
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


def test_alone_each_query_avoids_the_larger_join_first() -> None:
    assert decide_orders((Q1,), PAPER, BUDGET_S).orders["q1", "s"] == ("s", "r", "t")
    assert decide_orders((Q2,), PAPER, BUDGET_S).orders["q2", "t"] == ("t", "u", "s")


def test_together_they_take_the_step_that_the_other_needs_anyway() -> None:
    orders = decide_orders((Q1, Q2), PAPER, BUDGET_S).orders
    assert orders["q1", "s"] == ("s", "t", "r")
    assert orders["q2", "t"] == ("t", "s", "u")


def test_shared_orders_share_steps_in_the_plan() -> None:
    decisions = decide_orders((Q1, Q2), PAPER, BUDGET_S)
    placement = even_placement(8, 2)
    together = plan_queries((Q1, Q2), STREAMS, placement, epoch=1, stats=PAPER, decisions=decisions)
    greedy = plan_queries((Q1, Q2), STREAMS, placement, epoch=1, stats=PAPER)
    assert sum(1 for tree in together.trees for _ in tree.walk()) < sum(1 for tree in greedy.trees for _ in tree.walk())


def test_queries_of_two_relations_need_no_decision() -> None:
    two = live("two", "SELECT r.a FROM r JOIN s ON r.a = s.a")
    assert decide_orders((two,), PAPER, BUDGET_S).orders == {}


def test_it_decides_again_only_for_other_queries_and_statistics() -> None:
    decide = jointly(BUDGET_S)
    first = decide((Q1, Q2), STREAMS, PAPER, 0)
    assert decide((Q1, Q2), STREAMS, PAPER, 1) is first
    assert decide((Q1,), STREAMS, PAPER, 2) is not first
    others = StatsCatalog(rows_in_window=dict.fromkeys("rstu", 7.0))
    assert decide((Q1,), STREAMS, others, 3) is not decide((Q1,), STREAMS, PAPER, 4)


@pytest.mark.parametrize("seed", range(6))
def test_orders_are_complete_and_without_cross_products(seed: int, tmp_path: Path) -> None:
    case = random_case(seed, CHAINS)
    session = open_session(case, tmp_path)
    for query in case.queries:
        session.create_query(query.sql, query.name)
    _, queries = session.engine.plan()
    session.close()
    orders = decide_orders(queries, StatsCatalog(), BUDGET_S).orders
    assert len(orders) == sum(len(q.query.relations) for q in queries if len(q.query.relations) > 2)
    query_by_id = {query.id: query.query for query in queries}
    for (name, start), order in orders.items():
        query = query_by_id[name]
        assert order[0] == start
        assert sorted(order) == sorted(relation.alias for relation in query.relations)
        assert all(edges_between(query, list(order[:n]), order[n]) for n in range(1, len(order)))


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_batch_sql_under_joint_orders(seed: int) -> None:
    check_case(replace(random_case(seed, CHAINS), plan_seed=None), optimizer="joint", keep_intermediates=seed % 2 == 0)
