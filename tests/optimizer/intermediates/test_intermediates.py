from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.intermediates.candidates import intermediate_of, intermediates_of, keepable_subsets, starts_of
from dovetail.optimizer.intermediates.collapse import StandIn, collapse, collapsed_alias
from dovetail.optimizer.intermediates.kept import KeptIntermediate, Use
from dovetail.optimizer.intermediates.maintaining_query import maintaining_query
from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.intermediate import Intermediate
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.query.expression import TRUE
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, TIMESTAMP

COLUMNS = (("x", BIGINT), ("y", BIGINT), ("v", BIGINT), ("ts", TIMESTAMP))
STREAMS = {name: Stream(name, COLUMNS, "ts") for name in "abcde"}
KEPT = collapsed_alias(0)
CHAIN = "SELECT a.v, c.v FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y"


def live(sql: str, name: str = "q") -> LiveQuery:
    return LiveQuery(name, name, compile_sql(sql, STREAMS, timezone="UTC"))


def test_connected_relations_of_different_streams_can_be_kept() -> None:
    assert keepable_subsets(live(CHAIN)) == [("a", "b"), ("b", "c")]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT r.v FROM a r JOIN a s ON r.x = s.x JOIN c ON s.y = c.y AND r.y = c.y AND r.x = c.x",
        "SELECT a.v FROM a JOIN b ON a.x + 1 = b.x JOIN c ON b.y + 1 = c.y",
    ],
    ids=["a self-join", "computed keys"],
)
def test_what_has_no_plain_columns_of_two_streams_cannot_be_kept(sql: str) -> None:
    keepable = keepable_subsets(live(sql))
    assert ("r", "s") not in keepable
    assert ("a", "b") not in keepable


def test_only_starts_that_rank_above_all_members_may_probe() -> None:
    chain = live(CHAIN)
    assert starts_of(chain, ("a", "b")) == ("c",)
    assert starts_of(chain, ("b", "c")) == ()


def test_a_kept_join_is_named_by_content() -> None:
    bounded = live(f"{CHAIN} WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS")
    kept = intermediate_of(bounded, ("a", "b"), STREAMS)
    assert kept.id == "(a * b)[0.x=1.x; 1-0<=5000000us, 0-1<=0us]"
    assert kept.event_time == "0.ts"
    other = live("SELECT s.v FROM b s JOIN a r ON s.x = r.x JOIN d ON d.y = r.y", "other")
    assert intermediate_of(other, ("r", "s"), STREAMS) == intermediate_of(live(CHAIN), ("a", "b"), STREAMS)


def test_a_collapsed_query_asks_of_stored_rows_what_the_query_asked_of_members() -> None:
    chain = live(
        f"{CHAIN} AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 2 SECONDS "
        "WHERE a.v > 3 AND a.v < b.v AND a.v + c.v > 7 AND b.ts >= a.ts"
    )
    kept = intermediate_of(chain, ("a", "b"), STREAMS)
    collapsed = collapse(chain, [StandIn(("a", "b"), kept)], STREAMS).query
    assert [relation.alias for relation in collapsed.relations] == ["c", KEPT]
    selection = str(collapsed.relation(KEPT).selection)
    assert "kept 0.0.v" in selection
    assert "kept 0.1.v" in selection
    assert [str(equality.side_of(KEPT)) for equality in collapsed.equalities] == ["kept 0.1.y"]
    residuals = " ".join(map(str, collapsed.residuals))
    assert "kept 0.0.v" in residuals, "a condition with c stays outside"
    assert "kept 0.1.ts" in residuals, "b's time is not that of the stored row, so its bounds are tested"
    assert [str(column.expression) for column in collapsed.output] == ["kept 0.0.v", "c.v"]


def test_a_query_asks_for_the_bounds_that_a_looser_intermediate_does_not_keep() -> None:
    tight, loose = (
        live(f"{CHAIN} WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL {seconds} SECONDS", f"q{seconds}")
        for seconds in (2, 5)
    )
    kept, *others = intermediates_of([(tight, ("a", "b"), ("c",)), (loose, ("a", "b"), ("c",))], STREAMS)
    assert not others, "one store serves both"
    assert kept.intermediate == intermediate_of(loose, ("a", "b"), STREAMS)
    stand_in = StandIn(("a", "b"), kept.intermediate)
    assert "2000000" in str(collapse(tight, [stand_in], STREAMS).query.relation(KEPT).selection)
    assert collapse(loose, [stand_in], STREAMS).query.relation(KEPT).selection == TRUE


def test_two_joins_of_a_query_collapse_at_once() -> None:
    chain = live(
        "SELECT a.v, e.v FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y JOIN d ON c.x = d.x JOIN e ON d.y = e.y "
        "AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 2 SECONDS"
    )
    stand_ins = [StandIn(aliases, intermediate_of(chain, aliases, STREAMS)) for aliases in (("a", "b"), ("c", "d"))]
    collapsed = collapse(chain, stand_ins, STREAMS).query
    assert [relation.alias for relation in collapsed.relations] == ["e", "kept 0", "kept 1"]
    assert [sorted(equality.aliases) for equality in collapsed.equalities] == [["kept 0", "kept 1"], ["e", "kept 1"]]
    assert "kept 0.1.ts" in " ".join(map(str, collapsed.residuals)), "b's time is not that of the stored row"


def test_the_plan_s_order_of_ranks_says_who_may_probe() -> None:
    chain = replace(live(CHAIN), rank_order=("c", "b", "a"))
    assert starts_of(chain, ("a", "b")) == ()
    assert starts_of(chain, ("b", "c")) == ("a",)


def test_the_maintaining_query_wants_what_any_user_wants() -> None:
    one, other = live(f"{CHAIN} WHERE a.v > 3", "one"), live(f"{CHAIN} WHERE a.v < 1", "other")
    kept = KeptIntermediate(
        intermediate_of(one, ("a", "b"), STREAMS),
        0,
        (Use("one", ("a", "b"), ("c",)), Use("other", ("a", "b"), ("c",))),
    )
    maintaining = maintaining_query(kept, {"one": one, "other": other}, STREAMS)
    selection = str(maintaining.query.relation("i0").selection)
    assert "gt" in selection
    assert "lt" in selection
    assert maintaining.into == kept.intermediate.id


def test_a_selection_that_could_fail_is_left_to_its_own_query() -> None:
    query = live(f"{CHAIN} WHERE 10 / a.v > 1")
    kept = KeptIntermediate(intermediate_of(query, ("a", "b"), STREAMS), 0, (Use("q", ("a", "b"), ("c",)),))
    assert str(maintaining_query(kept, {"q": query}, STREAMS).query.relation("i0").selection) == "True:boolean"


@pytest.mark.parametrize(("starts", "hops"), [((), 2), (("c",), 2)])
def test_a_plan_keeps_the_join_and_probes_it_once_it_may(starts: tuple[str, ...], hops: int) -> None:
    query = live(CHAIN)
    kept = KeptIntermediate(intermediate_of(query, ("a", "b"), STREAMS), 0, (Use("q", ("a", "b"), ("c",), starts),))
    plan = plan_queries((query,), STREAMS, even_placement(8, 2), epoch=1, decisions=Decisions(intermediates=(kept,)))
    assert kept.intermediate.id in [store.id for store in plan.stores]
    assert plan.store(kept.intermediate.id).indexes, "it is indexed before it is probed"
    probing = {tree.start for tree in plan.trees for node in tree.walk() if node.step.target == kept.intermediate.id}
    assert probing == set(starts)
    stored = {
        tree.start
        for tree in plan.trees
        for node in tree.walk()
        for emit in node.emits
        if emit.into == kept.intermediate.id
    }
    assert stored == {"a", "b"}
    assert plan.hop_count == hops


def test_members_are_different_streams_in_order() -> None:
    with pytest.raises(ValueError, match="different streams"):
        Intermediate(("a", "a"), (("0.x", "1.x"),), (), (None, None))
