"""Which uses meet at a first step: by queries, as users write them."""

from __future__ import annotations

import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.key_classes import key_classes, uses_of
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream
from dovetail.query.types import INT, TIMESTAMP

COLUMNS = (("x", INT), ("y", INT), ("ts", TIMESTAMP))
STREAMS = {name: Stream(name, COLUMNS, "ts") for name in "abcd"}
SOON = "BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"


def plan_of(*texts: str) -> SharedPlan:
    queries = tuple(LiveQuery(f"q{i}#1", f"q{i}", compile_sql(text, STREAMS)) for i, text in enumerate(texts))
    return plan_queries(queries, STREAMS, even_placement(2, 1), epoch=1)


def classes_of(*texts: str) -> list[set[str]]:
    return [{store + index for store, index in uses} for uses in key_classes(plan_of(*texts))]


@pytest.mark.parametrize(
    ("texts", "classes"),
    [
        (["SELECT a.y FROM a JOIN b ON a.x = b.y"], [{"a[x]", "b[y]"}]),
        (
            ["SELECT a.y FROM a JOIN b ON a.x = b.x", "SELECT a.y FROM a JOIN c ON a.x = c.x"],
            [{"a[x]", "b[x]", "c[x]"}],
        ),
        (
            ["SELECT a.y FROM a JOIN b ON a.x = b.x", "SELECT a.y FROM a JOIN b ON a.y = b.y"],
            [{"a[x]", "b[x]"}, {"a[y]", "b[y]"}],
        ),
        (["SELECT a.y FROM a JOIN b ON a.x = b.x AND a.y = b.y"], [{"a[x, y]", "b[x, y]"}]),
        (["SELECT p.x FROM a p JOIN a q ON p.x = q.y"], [{"a[x]", "a[y]"}]),
        (["SELECT a.x FROM a JOIN b ON a.x < b.x"], []),
        ([f"SELECT a.y FROM a LEFT ANTI JOIN b ON a.x = b.x AND b.ts {SOON}"], [{"a[x]", "b[x]"}]),
        ([f"SELECT a.y FROM a LEFT SEMI JOIN b ON a.x = b.y AND b.ts {SOON}"], [{"a[x]", "b[y]"}]),
    ],
)
def test_uses_whose_rows_meet_first_are_of_one_class(texts: list[str], classes: list[set[str]]) -> None:
    assert classes_of(*texts) == classes


def test_later_steps_unite_nothing() -> None:
    """New rows of a meet b by x, and only then c by b.y."""
    plan = plan_of("SELECT a.y FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y")
    assert {tree.start for tree in plan.trees if len(list(tree.walk())) == 2} == {"a", "b", "c"}
    classes = key_classes(plan)
    assert not any({("a", "[x]"), ("c", "[y]")} <= uses for uses in classes)
    assert uses_of(plan) == {("a", "[x]"), ("b", "[x]"), ("b", "[y]"), ("c", "[y]")}


def test_indexes_of_one_key_in_several_orders_are_one_use() -> None:
    plan = plan_of("SELECT a.y FROM a JOIN b ON a.x = b.x AND a.y BETWEEN b.y AND b.y + 5")
    assert {index.id for index in plan.store("b").indexes} == {"[x]", "[x; y]"}
    assert key_classes(plan) == (frozenset({("a", "[x]"), ("b", "[x]")}),)
