from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.needs import growing_streams, retention_of
from dovetail.plan.placement import even_placement
from dovetail.plan.store_plan import StorePlan
from dovetail.query.stream import Stream

MakeQuery = Callable[[str, str], LiveQuery]
SECOND = 1_000_000
JOIN = "SELECT r.v FROM r JOIN s ON r.x = s.x"
BOUNDED = f"{JOIN} AND s.ts BETWEEN r.ts - INTERVAL 1 SECOND AND r.ts + INTERVAL 5 SECONDS"


@pytest.fixture
def stores(streams: Mapping[str, Stream]) -> Callable[..., dict[str, StorePlan]]:
    def derive(*queries: LiveQuery) -> dict[str, StorePlan]:
        plan = plan_queries(queries, streams, even_placement(2, 1), epoch=1)
        return {store.id: store for store in plan.stores}

    return derive


Stores = Callable[..., dict[str, StorePlan]]


def test_a_store_keeps_the_columns_that_some_query_still_needs(live: MakeQuery, stores: Stores) -> None:
    found = stores(live("a", f"{JOIN} WHERE s.y > 1"), live("b", "SELECT t.v FROM r JOIN t ON r.y = t.x AND r.v < t.y"))
    # The event time always; s.y only decides on arrival and is not kept.
    assert {name: store.columns for name, store in found.items()} == {
        "r": ("ts", "v", "x", "y"),
        "s": ("ts", "x"),
        "t": ("ts", "v", "x", "y"),
    }


def test_a_stream_without_event_time_has_a_store_without_one(live: MakeQuery, stores: Stores) -> None:
    found = stores(live("q", "SELECT timeless.v FROM timeless JOIN s ON timeless.x = s.x"))
    assert found["timeless"].event_time is None
    assert found["timeless"].columns == ("v", "x")


def test_equal_selections_of_two_queries_are_one(live: MakeQuery, stores: Stores) -> None:
    found = stores(
        live("a", f"{JOIN} WHERE s.v > 1"),
        live("b", "SELECT two.y FROM r one JOIN s two ON one.x = two.x WHERE two.v > 1"),
        live("c", f"{JOIN} WHERE s.v > 2"),
    )
    assert [str(selection) for selection in found["s"].selections] == ["gt(row.v, 1:int)", "gt(row.v, 2:int)"]
    assert not found["s"].keeps_all
    assert found["r"].keeps_all


def test_one_query_without_a_selection_keeps_all_rows(live: MakeQuery, stores: Stores) -> None:
    found = stores(live("a", f"{JOIN} WHERE s.v > 1"), live("b", JOIN))
    assert found["s"].keeps_all
    assert [str(selection) for selection in found["s"].tested_selections] == ["gt(row.v, 1:int)"]


def test_both_sides_of_a_first_probe_are_indexed_and_an_index_is_shared(live: MakeQuery, stores: Stores) -> None:
    found = stores(live("a", JOIN), live("b", BOUNDED), live("c", "SELECT r.v FROM r JOIN s ON r.y = s.x"))
    assert [index.id for index in found["r"].indexes] == ["[x]", "[y]"]
    assert [index.id for index in found["s"].indexes] == ["[x]"]


def test_windows_of_one_stream_are_stores_of_their_own(live: MakeQuery, stores: Stores) -> None:
    windowed = "(SELECT *, window(ts, '4 seconds', '2 seconds') AS w FROM {}) {}"
    sql = f"SELECT r.v FROM {windowed.format('r', 'r')} JOIN {windowed.format('s', 's')} ON r.x = s.x AND r.w = s.w"
    found = stores(live("hop", sql), live("plain", JOIN))
    assert len(found) == 4
    assert {store.stream for store in found.values()} == {"r", "s"}


def test_a_row_is_kept_as_long_as_it_can_find_partners(live: MakeQuery, stores: Stores) -> None:
    found = stores(live("q", BOUNDED))
    assert found["r"].retention.keep_us_by_stream == (("s", 5 * SECOND),)
    assert found["s"].retention.keep_us_by_stream == (("r", 1 * SECOND),)


def test_the_longest_window_over_all_queries_counts(live: MakeQuery, stores: Stores) -> None:
    found = stores(live("a", BOUNDED), live("b", f"{JOIN} WITHIN 9 SECONDS"))
    assert found["r"].retention.keep_us_by_stream == (("s", 9 * SECOND),)
    assert found["s"].retention.keep_us_by_stream == (("r", 9 * SECOND),)


def test_one_query_without_bounds_keeps_a_store_for_ever(live: MakeQuery, stores: Stores) -> None:
    found = stores(live("a", BOUNDED), live("b", "SELECT r.v FROM r JOIN t ON r.x = t.x"))
    assert not found["r"].retention.is_bounded
    assert found["s"].retention.is_bounded


def test_implied_bounds_bound_every_store_of_a_chain(live: MakeQuery, stores: Stores) -> None:
    sql = (
        "SELECT r.v FROM r JOIN s ON r.x = s.x JOIN t ON s.y = t.y"
        " AND s.ts BETWEEN r.ts - INTERVAL 1 SECOND AND r.ts + INTERVAL 2 SECONDS"
        " AND t.ts BETWEEN s.ts - INTERVAL 4 SECONDS AND s.ts + INTERVAL 3 SECONDS"
    )
    found = stores(live("q", sql))
    assert found["r"].retention.keep_us_by_stream == (("s", 2 * SECOND), ("t", 5 * SECOND))
    assert found["s"].retention.keep_us_by_stream == (("r", 1 * SECOND), ("t", 3 * SECOND))
    assert found["t"].retention.keep_us_by_stream == (("r", 5 * SECOND), ("s", 4 * SECOND))


def test_a_one_sided_bound_lets_one_store_go_and_not_the_other(live: MakeQuery, stores: Stores) -> None:
    query = live("q", f"{JOIN} AND s.ts <= r.ts + INTERVAL 5 SECONDS")
    found = stores(query)
    assert found["r"].retention.keep_us_by_stream == (("s", 5 * SECOND),)
    assert found["s"].retention.keep_us_by_stream is None
    assert growing_streams(query) == ["s"]


def test_growing_streams_are_named(live: MakeQuery) -> None:
    assert growing_streams(live("q", BOUNDED)) == []
    assert growing_streams(live("q", JOIN)) == ["r", "s"]
    assert growing_streams(live("q", "SELECT a.v FROM r a JOIN r b ON a.x = b.x")) == ["r"]


def test_a_self_join_waits_for_its_own_stream(live: MakeQuery) -> None:
    query = live("q", "SELECT a.v FROM r a JOIN r b ON a.x = b.x AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECONDS")
    uses = [(query, relation) for relation in query.query.relations]
    assert retention_of(uses).keep_us_by_stream == (("r", 3 * SECOND),)
