from __future__ import annotations

from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.affected_queries import queries_of_index, queries_of_selection
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream
from dovetail.query.types import INT

STREAMS = {name: Stream(name, (("k", INT), ("v", INT))) for name in ("a", "b", "c")}
TEXTS = {
    "plain": "SELECT a.k FROM a JOIN b ON a.k = b.k",
    "selects": "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE 10 / b.v > 1",
    "selects_too": "SELECT a.v FROM b JOIN a ON a.k = b.k WHERE 10 / b.v > 1 AND a.v > 0",
    "other_key": "SELECT a.k FROM a JOIN b ON a.v = 10 / b.v",
    "elsewhere": "SELECT a.k FROM a JOIN c ON a.k = c.k WHERE 10 / c.v > 1",
}


def make_plan() -> SharedPlan:
    queries = tuple(LiveQuery(name, name, compile_sql(text, STREAMS)) for name, text in TEXTS.items())
    return plan_queries(queries, STREAMS, even_placement(2, 1), epoch=1)


def test_a_selection_belongs_to_all_that_ask_it_of_the_store() -> None:
    plan = make_plan()
    (selection,) = plan.store("b").tested_selections
    assert queries_of_selection(plan, "b", selection) == {"selects", "selects_too"}
    (selection,) = plan.store("c").tested_selections
    assert queries_of_selection(plan, "c", selection) == {"elsewhere"}


def test_an_index_belongs_to_all_that_probe_it_or_probe_in_its_order() -> None:
    plan = make_plan()
    users = {index.id: queries_of_index(plan, "b", index) for index in plan.store("b").indexes}
    assert len(users) == 2
    assert users["[k]"] == {"plain", "selects", "selects_too"}
    assert {"other_key"} in users.values()
