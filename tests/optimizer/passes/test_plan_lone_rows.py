"""Outer, semi and anti joins in a plan: who asks together, and how long rows stay for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.needs import retention_of
from dovetail.plan.placement import even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream

MakeQuery = Callable[[str, str], LiveQuery]
SECOND = 1_000_000
NEAR = "r.x = s.x AND s.ts BETWEEN r.ts - INTERVAL 2 SECONDS AND r.ts + INTERVAL 5 SECONDS"


@pytest.fixture
def plan(streams: Mapping[str, Stream]) -> Callable[..., SharedPlan]:
    return lambda *queries: plan_queries(queries, streams, even_placement(2, 1), epoch=1)


Plan = Callable[..., SharedPlan]


def test_queries_with_the_same_step_and_horizon_ask_together(live: MakeQuery, plan: Plan) -> None:
    found = plan(
        live("left", f"SELECT r.v FROM r LEFT JOIN s ON {NEAR} AND r.v > 1 WHERE s.v IS NULL"),
        live("anti", f"SELECT r.y FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE {NEAR} AND s.v = 3)"),
        live("longer", f"SELECT r.v FROM r LEFT ANTI JOIN s ON {NEAR.replace('5', '6')}"),
        live("full", f"SELECT r.v FROM s FULL JOIN r ON {NEAR}"),
    )
    asking = [([leg.query for leg in lone.tree.legs], lone.tree.start, lone.upper_us) for lone in found.lone_rows]
    assert asking == [
        (["left#1", "anti#1", "full#1"], "r", 5 * SECOND),
        (["longer#1"], "r", 6 * SECOND),
        (["full#1"], "s", 2 * SECOND),
    ]
    assert found.hop_count == 1


def test_only_joins_that_answer_pairs_probe_with_new_rows(live: MakeQuery, plan: Plan) -> None:
    found = plan(
        live("anti", f"SELECT r.v FROM r LEFT ANTI JOIN s ON {NEAR}"),
        live("semi", f"SELECT r.v FROM r LEFT SEMI JOIN s ON {NEAR}"),
        live("exists", f"SELECT r.v FROM r WHERE EXISTS (SELECT 1 FROM s WHERE {NEAR})"),
    )
    assert found.trees == ()
    (matched,) = found.matched_rows
    assert [leg.query for leg in matched.from_right.legs] == ["semi#1", "exists#1"]
    assert found.deciding_stores == {"r", "s"}


@pytest.mark.parametrize(
    ("join", "kept"),
    [
        ("JOIN", {"r": (("s", 5),), "s": (("r", 2),)}),
        ("LEFT JOIN", {"r": (("s", 5),), "s": (("r", 2), ("s", 7))}),
        ("LEFT SEMI JOIN", {"r": (("s", 5),), "s": (("r", 2), ("s", 7))}),
        ("RIGHT JOIN", {"r": (("r", 7), ("s", 5)), "s": (("r", 2),)}),
        ("FULL JOIN", {"r": (("r", 7), ("s", 5)), "s": (("r", 2), ("s", 7))}),
    ],
)
def test_partners_stay_until_the_rows_that_they_could_meet_are_decided(
    live: MakeQuery, join: str, kept: dict[str, tuple[tuple[str, int], ...]]
) -> None:
    query = live("q", f"SELECT r.v FROM r {join} s ON {NEAR}")
    found = {relation.alias: retention_of([(query, relation)]).keep_us_by_stream for relation in query.query.relations}
    assert found == {alias: tuple((stream, s * SECOND) for stream, s in own) for alias, own in kept.items()}
