from __future__ import annotations

from collections.abc import Callable

import pytest

from dovetail.optimizer.passes.choose_probe_orders import choose_probe_order, estimated_rows
from dovetail.plan.live_query import LiveQuery
from dovetail.stats.catalog import StatsCatalog

MakeQuery = Callable[[str, str], LiveQuery]
CHAIN = "SELECT r.v FROM r JOIN s ON r.x = s.x JOIN t ON s.y = t.y"
ROWS = {"r": 100.0, "s": 1000.0, "t": 10.0}


def order_of(query: LiveQuery, start: str, stats: StatsCatalog, shared: str | None = None) -> str:
    order = choose_probe_order(query, start, stats, lambda _joined, alias: alias == shared)
    return ",".join(order.aliases)


def test_the_smaller_intermediate_goes_first(live: MakeQuery) -> None:
    chain = live("q", CHAIN)
    assert order_of(chain, "s", StatsCatalog(ROWS)) == "s,t,r"
    assert order_of(chain, "s", StatsCatalog({**ROWS, "t": 500.0})) == "s,r,t"


def test_given_matches_change_the_order(live: MakeQuery) -> None:
    chain = live("q", CHAIN)
    many = StatsCatalog(ROWS, {"s.y=t.y": 0.5, "r.x=s.x": 0.001})
    assert order_of(chain, "s", many) == "s,r,t"


def test_a_selection_makes_its_relation_cheaper(live: MakeQuery) -> None:
    stats = StatsCatalog({"r": 100.0, "s": 100.0, "t": 100.0})
    assert order_of(live("q", CHAIN), "s", stats) == "s,r,t"
    assert order_of(live("q", f"{CHAIN} WHERE t.v > 1"), "s", stats) == "s,t,r"


@pytest.mark.parametrize(("start", "expected"), [("r", "r,s,t"), ("t", "t,s,r")])
def test_a_store_that_no_equality_reaches_is_never_next(live: MakeQuery, start: str, expected: str) -> None:
    tempting = StatsCatalog({"r": 1.0, "s": 1e9, "t": 1.0})
    assert order_of(live("q", CHAIN), start, tempting) == expected


def test_among_equally_good_stores_the_shared_one_wins(live: MakeQuery) -> None:
    chain = live("q", CHAIN)
    assert order_of(chain, "s", StatsCatalog()) == "s,r,t"
    assert order_of(chain, "s", StatsCatalog(), shared="t") == "s,t,r"


def test_sharing_does_not_win_over_a_smaller_intermediate(live: MakeQuery) -> None:
    assert order_of(live("q", CHAIN), "s", StatsCatalog(ROWS), shared="r") == "s,t,r"


def test_partial_results_count_those_whose_newest_member_is_the_start(live: MakeQuery) -> None:
    query = live("q", CHAIN).query
    stats = StatsCatalog(ROWS, {"r.x=s.x": 0.01})
    assert estimated_rows(query, ["s"], stats) == 1000.0
    assert estimated_rows(query, ["s", "r"], stats) == pytest.approx(1000 * 100 * 0.01 / 2)


def test_statistics_are_found_whatever_the_aliases(live: MakeQuery) -> None:
    query = live("q", "SELECT a.v FROM s a JOIN r b ON b.x = a.x").query
    stats = StatsCatalog(ROWS, {"r.x=s.x": 0.5})
    assert estimated_rows(query, ["a", "b"], stats) == pytest.approx(1000 * 100 * 0.5 / 2)


def test_an_equality_that_follows_from_others_is_not_counted_again(live: MakeQuery) -> None:
    triangle = "SELECT r.v FROM r JOIN s ON r.x = s.x JOIN t ON s.x = t.x AND r.x = t.x"
    stats = StatsCatalog(ROWS, {"r.x=s.x": 0.04, "s.x=t.x": 0.04, "r.x=t.x": 0.1})
    query = live("q", triangle).query
    assert estimated_rows(query, ["r", "s", "t"], stats) == pytest.approx(100 * 1000 * 10 * 0.04 * 0.04 / 3)
    others = live("q", triangle.replace("r.x = t.x", "r.y = t.y")).query
    known = StatsCatalog(ROWS, {"r.x=s.x": 0.04, "s.x=t.x": 0.04, "r.y=t.y": 0.1})
    assert estimated_rows(others, ["r", "s", "t"], known) == pytest.approx(100 * 1000 * 10 * 0.04 * 0.04 * 0.1 / 3)
