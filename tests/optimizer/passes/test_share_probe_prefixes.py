from __future__ import annotations

from collections.abc import Callable

import pytest

from dovetail.optimizer.passes.share_probe_prefixes import share_probe_prefixes
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.probe_tree import MemberBound, ProbeTree
from dovetail.plan.visibility import Visibility
from dovetail.stats.catalog import StatsCatalog

MakeQuery = Callable[[str, str], LiveQuery]
SHORT = "SELECT r.v FROM r JOIN s ON r.x = s.x"
LONG = "SELECT r.v, t.v FROM r JOIN s ON r.x = s.x JOIN t ON s.y = t.y"
SECOND = 1_000_000


def trees_of(*queries: LiveQuery) -> dict[str, ProbeTree]:
    return {tree.start: tree for tree in share_probe_prefixes(queries, StatsCatalog())}


def test_equal_first_steps_are_taken_once_and_fork_later(live: MakeQuery) -> None:
    (node,) = trees_of(live("short", SHORT), live("long", LONG))["r"].children
    assert [leg.query for leg in node.legs] == ["short#1", "long#1"]
    assert [emit.query for emit in node.emits] == ["short#1"]
    (child,) = node.children
    assert child.step.target == "t"
    assert [leg.query for leg in child.legs] == [emit.query for emit in child.emits] == ["long#1"]


@pytest.mark.parametrize(
    "other",
    [
        "SELECT s.v FROM s JOIN r ON s.x = r.x",
        "SELECT one.v FROM r one JOIN s two ON one.x = two.x",
        f"{SHORT} WHERE r.v > 1 AND s.v < 2",
        f"{SHORT} AND r.v < s.v",
        f"{SHORT} WITHIN 5 SECONDS",
    ],
    ids=["turned", "aliases", "selections", "residual", "window"],
)
def test_names_order_selections_residuals_and_windows_do_not_hinder_sharing(live: MakeQuery, other: str) -> None:
    trees = trees_of(live("short", SHORT), live("other", other))
    for start in ("r", "s"):
        (node,) = trees[start].children
        assert len(node.legs) == 2


@pytest.mark.parametrize(
    "other",
    [
        "SELECT r.v FROM r JOIN s ON r.y = s.x",
        "SELECT r.v FROM r JOIN s ON r.x = s.y",
        "SELECT r.v FROM r JOIN s ON r.x = s.x AND r.y = s.y",
        "SELECT r.v FROM r JOIN s ON r.x + 1 = s.x",
        "SELECT r.v FROM r JOIN t ON r.x = t.x",
    ],
    ids=["probe key", "stored key", "more keys", "computed", "target"],
)
def test_other_keys_or_targets_must_not_be_shared(live: MakeQuery, other: str) -> None:
    nodes = trees_of(live("short", SHORT), live("other", other))["r"].children
    assert [[leg.query for leg in node.legs] for node in nodes] == [["short#1"], ["other#1"]]
    assert len({node.id for node in nodes}) == 2


def test_other_visibility_must_not_be_shared(live: MakeQuery) -> None:
    (tree,) = trees_of(live("q", "SELECT a.v FROM r a JOIN r b ON a.x = b.x")).values()
    assert [node.step.visibility for node in tree.children] == [Visibility.UP_TO_NOW, Visibility.EARLIER]
    assert [[leg.start for leg in node.legs] for node in tree.children] == [[0], [1]]


def test_two_starts_of_a_threefold_self_join_take_the_same_step(live: MakeQuery) -> None:
    # From a and from b the first probe is the same: the other r by x, this batch's rows included.
    (tree,) = trees_of(live("q", "SELECT a.v FROM r a JOIN r b ON a.x = b.x JOIN r c ON b.x = c.x")).values()
    assert sorted((leg.query, leg.start) for leg in tree.legs) == [("q#1", 0), ("q#1", 1), ("q#1", 2)]
    shared = [node for node in tree.children if len(node.legs) > 1]
    assert shared
    assert {leg.query for leg in shared[0].legs} == {"q#1"}
    assert len({leg.start for leg in shared[0].legs}) == len(shared[0].legs)
    emits = sorted((emit.query, emit.start) for node in tree.walk() for emit in node.emits)
    assert emits == [("q#1", 0), ("q#1", 1), ("q#1", 2)]


def test_a_leg_carries_what_its_query_alone_asks(live: MakeQuery) -> None:
    sql = f"{SHORT} AND r.v < s.v AND s.ts BETWEEN r.ts - INTERVAL 1 SECOND AND r.ts + INTERVAL 5 SECONDS WHERE s.v > 3"
    (node,) = trees_of(live("q", sql))["r"].children
    (leg,) = node.legs
    assert str(leg.selection) == "gt(row.v, 3:int)"
    assert set(leg.bounds) == {MemberBound(0, 1, 5 * SECOND), MemberBound(1, 0, SECOND)}
    assert [str(residual) for residual in leg.residuals] == ["lt(m0.v, m1.v)"]


@pytest.mark.parametrize(("start", "expected"), [("r", "lt(m0.v, m2.v)"), ("s", "lt(m1.v, m2.v)")])
def test_a_residual_waits_for_its_last_member(live: MakeQuery, start: str, expected: str) -> None:
    (node,) = trees_of(live("q", f"{LONG} AND r.v < t.v"))[start].children
    assert node.legs[0].residuals == ()
    (child,) = node.children
    assert [str(residual) for residual in child.legs[0].residuals] == [expected]


def test_implied_bounds_prune_hops_that_the_query_does_not_bound(live: MakeQuery) -> None:
    sql = (
        f"{LONG} AND s.ts BETWEEN r.ts AND r.ts + INTERVAL 2 SECONDS"
        " AND t.ts BETWEEN s.ts AND s.ts + INTERVAL 3 SECONDS"
    )
    (node,) = trees_of(live("q", sql))["r"].children
    (child,) = node.children
    assert MemberBound(0, 2, 5 * SECOND) in child.legs[0].bounds
    assert MemberBound(2, 0, 0) in child.legs[0].bounds


def test_the_output_speaks_of_members_in_probe_order(live: MakeQuery) -> None:
    trees = trees_of(live("q", "SELECT r.v, s.y FROM r JOIN s ON r.x = s.x"))
    outputs = {
        start: [str(column.expression) for column in tree.children[0].emits[0].output] for start, tree in trees.items()
    }
    assert outputs == {"r": ["m0.v", "m1.y"], "s": ["m1.v", "m0.y"]}


def test_the_same_queries_give_the_same_trees(live: MakeQuery) -> None:
    queries = (live("short", SHORT), live("long", LONG))
    assert share_probe_prefixes(queries, StatsCatalog()) == share_probe_prefixes(queries, StatsCatalog())
