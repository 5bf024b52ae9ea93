"""Aggregations in the engine: what queries share, when windows close, what fails alone, what is kept how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dovetail.core.errors import QueryError
from dovetail.engine.explain.explain import explain_plan, explain_preview, explain_query
from dovetail.store.layout import result_batch
from dovetail.store.result_parts import read_result
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench, Row

JOIN = "FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts + INTERVAL 5 SECONDS"
COUNT = f"SELECT a.k, COUNT(*) AS n {JOIN} GROUP BY a.k"
PER_WINDOW = f"SELECT window.start AS w, COUNT(*) AS n {JOIN} GROUP BY window(a.ts, '10 seconds')"


def rows_of(session: LocalSession, name: str) -> list[tuple[object, ...]]:
    """The current answer, sorted."""
    table = session.results(name).to_pylist()
    return sorted((tuple(row.values()) for row in table), key=str)


def answered(session: LocalSession, name: str) -> list[tuple[int, dict[str, object]]]:
    """Every row of the result files, with the batch that it was answered in."""
    found = []
    for part in session.engine.answers.results(session.engine.queries.named(name).id):
        found += [(result_batch(part.path), row) for row in read_result(session.engine.root, part).to_pylist()]
    return found


def folded_rows(session: LocalSession) -> list[int]:
    assert session.progress is not None
    return [entry["numFoldedRows"] for entry in session.progress["groups"]]


def test_queries_of_the_same_join_and_keys_share_one_fold(bench: Bench) -> None:
    session = bench.open(factorize=False)
    session.create_query(COUNT, "counted")
    session.create_query(
        "SELECT y.k, SUM(x.v) AS s FROM b x JOIN a y ON x.k = y.k "
        "AND x.ts BETWEEN y.ts - INTERVAL 5 SECONDS AND y.ts + INTERVAL 5 SECONDS GROUP BY y.k",
        "summed",
    )
    bench.push(session, a=[(1, 10, 1.0), (2, 20, 1.0)], b=[(1, 5, 1.0), (1, 6, 2.0)])
    assert folded_rows(session) == [2]
    assert rows_of(session, "counted") == [(1, 2)]
    assert rows_of(session, "summed") == [(1, 11)]
    (group,) = session.engine.plans.planned().plan.groups
    assert {user.query for user in group.users} == {"counted#1", "summed#2"}


def test_a_younger_query_shares_and_counts_from_its_first_batch(bench: Bench) -> None:
    session = bench.open(merge_fanout=2)
    session.create_query(COUNT, "old")
    bench.push(session, a=[(1, 0, 1.0)], b=[(1, 0, 1.0)])
    session.create_query(COUNT, "young")
    for batch in range(1, 8):
        bench.push(session, a=[(1, 0, 1.0)], b=[(1, batch, 1.0)])
        assert len(session.engine.plans.planned().plan.groups) == 1
    # Batch n brings a row to each side: n + 1 squared pairs, of which the first was there before the younger query.
    assert rows_of(session, "old") == [(1, 64)]
    assert rows_of(session, "young") == [(1, 63)]


def test_windows_of_one_pane_share_and_those_of_others_do_not(bench: Bench) -> None:
    session = bench.open(factorize=False)
    for name, window in (("a", "'10 seconds', '5 seconds'"), ("b", "'15 seconds', '5 seconds'"), ("c", "'4 seconds'")):
        session.create_query(f"SELECT window.start, COUNT(*) {JOIN} GROUP BY window(a.ts, {window})", name)
    groups = session.engine.plans.planned().plan.groups
    assert sorted(len(group.users) for group in groups) == [1, 2]
    bench.push(session, a=[(1, 0, t) for t in range(20)], b=[(1, 0, t) for t in range(20)])
    assert (
        folded_rows(session)[0] == folded_rows(session)[1] == sum(abs(s - t) <= 5 for s in range(20) for t in range(20))
    )


def test_a_window_is_answered_once_by_the_batch_that_closes_it(bench: Bench) -> None:
    session = bench.open()
    session.create_query(PER_WINDOW, "q")
    bench.push(session, a=[(1, 0, 1.0)], b=[(1, 0, 2.0)])
    assert answered(session, "q") == []
    # b may bring partners of rows of a until it is 5 s further; one second more and the window of 0 s is closed.
    bench.push(session, a=[(1, 0, 14.9)], b=[(1, 0, 14.9)])
    assert answered(session, "q") == []
    bench.push(session, a=[(1, 0, 15.0)], b=[(1, 0, 15.0)])
    assert [(batch, row["n"]) for batch, row in answered(session, "q")] == [(2, 1)]
    bench.push(session, a=[(1, 0, 40.0)], b=[(1, 0, 40.0)])
    assert [(batch, row["n"]) for batch, row in answered(session, "q")] == [(2, 1), (3, 4)]
    bench.push(session, a=[(1, 0, 60.0)], b=[(1, 0, 60.0)])
    # What is answered is gone: only the row of the last second is kept.
    assert sum(meta.rows for meta in session.engine.head.state.buckets if meta.store.startswith("groups/")) == 1


def test_one_batch_closes_windows_of_its_own_rows(bench: Bench) -> None:
    session = bench.open()
    session.create_query("SELECT window.start, SUM(v) AS s FROM a GROUP BY window(ts, '10 seconds')", "q")
    bench.push(session, a=[(1, 1, 1.0), (1, 2, 9.0), (1, 4, 10.0), (1, 8, 20.0)], splits=2)
    assert [row["s"] for _, row in answered(session, "q")] == [3, 4]


def test_old_rows_are_taken_back_and_unchanged_ones_are_not(bench: Bench) -> None:
    session = bench.open()
    session.create_query("SELECT k, MAX(v) AS m FROM a GROUP BY k HAVING MAX(v) < 10", "q")
    bench.push(session, a=[(1, 3, 1.0), (2, 4, 1.0), (3, 11, 1.0)])
    bench.push(session, a=[(1, 2, 1.0), (2, 5, 1.0), (3, 1, 1.0)])
    bench.push(session, a=[(1, 12, 1.0)])
    changes = [(batch, row["k"], row["m"], row["_change"]) for batch, row in answered(session, "q")]
    assert sorted(changes) == [(0, 1, 3, 1), (0, 2, 4, 1), (1, 2, 4, -1), (1, 2, 5, 1), (2, 1, 3, -1)]
    assert rows_of(session, "q") == [(2, 5)]


def test_a_global_aggregate_has_a_row_before_any_other(bench: Bench) -> None:
    session = bench.open()
    session.create_query("SELECT COUNT(*) AS n, SUM(v) AS s FROM a", "q")
    bench.push(session)
    bench.push(session)
    assert [(batch, row["n"], row["s"], row["_change"]) for batch, row in answered(session, "q")] == [(0, 0, None, 1)]
    bench.push(session, a=[(1, None, 1.0)])
    session.create_query("SELECT SUM(v) AS s, COUNT(*) AS n FROM a", "later")
    bench.push(session, b=[(1, 1, 1.0)])
    assert rows_of(session, "q") == [(1, None)]
    assert rows_of(session, "later") == [(None, 0)]


def test_distinct_answers_a_new_row_once(bench: Bench) -> None:
    session = bench.open()
    session.create_query("SELECT DISTINCT k, v FROM a", "q")
    bench.push(session, a=[(1, None, 1.0), (1, None, 1.0), (None, None, 1.0)])
    bench.push(session, a=[(1, None, 1.0), (1, 2, 1.0), (None, None, 1.0)])
    assert [(batch, row["k"], row["v"]) for batch, row in answered(session, "q")] == [
        (0, 1, None),
        (0, None, None),
        (1, 1, 2),
    ] or sorted((row["k"] or 0, row["v"] or 0) for _, row in answered(session, "q")) == [(0, 0), (1, 0), (1, 2)]
    assert len(answered(session, "q")) == 3


def test_a_sum_beyond_its_type_quarantines_its_query_alone(bench: Bench) -> None:
    session = bench.open()
    big = "CAST(9223372036854775807 AS BIGINT)"
    session.create_query(f"SELECT k, SUM(CASE WHEN v = 1 THEN {big} ELSE v END) AS s FROM a GROUP BY k", "sum")
    session.create_query("SELECT k, COUNT(*) AS n FROM a GROUP BY k", "count")
    bench.push(session, a=[(1, 1, 1.0), (2, 3, 1.0)])
    assert rows_of(session, "sum") == [(1, 9223372036854775807), (2, 3)]
    # Beyond it on the way, but not in the end.
    bench.push(session, a=[(1, 1, 1.0), (1, -1, 1.0)] + [(1, -2147483648, 1.0)] * 10)
    status = session.engine.queries.named("sum")
    assert status.state.value == "quarantined"
    assert "overflow" in (status.error or "")
    bench.push(session, a=[(1, 5, 1.0)])
    assert rows_of(session, "count") == [(1, 14), (2, 1)]
    assert rows_of(session, "sum") == [(1, 9223372036854775807), (2, 3)]


def test_a_sum_may_pass_its_type_on_the_way(bench: Bench) -> None:
    session = bench.open()
    largest = "CAST(9223372036854775807 AS BIGINT)"
    session.create_query(f"SELECT SUM(CASE WHEN v > 0 THEN {largest} ELSE -{largest} END) AS s FROM a", "q")
    bench.push(session, a=[(1, 1, 1.0), (1, 1, 1.0), (1, 1, 1.0), (1, -1, 1.0), (1, -1, 1.0), (1, -1, 1.0)], splits=2)
    assert rows_of(session, "q") == [(0,)]


def test_an_argument_that_fails_fails_who_asks_for_it(bench: Bench) -> None:
    session = bench.open()
    session.create_query(f"SELECT a.k, SUM(1 / b.v) AS s {JOIN} GROUP BY a.k", "dividing")
    session.create_query(f"SELECT a.k, COUNT(DISTINCT 1 / b.v) AS s {JOIN} GROUP BY a.k", "distinct")
    session.create_query(COUNT, "counting")
    bench.push(session, a=[(1, 0, 1.0)], b=[(1, 2, 1.0)])
    bench.push(session, a=[(1, 0, 1.0), (2, 0, 1.0)], b=[(1, 0, 1.0), (2, 1, 1.0)])
    for name in ("dividing", "distinct"):
        assert "division by zero" in (session.engine.queries.named(name).error or "")
        assert len(rows_of(session, name)) == 1
    bench.push(session, a=[(1, 0, 1.0)], b=[(1, 0, 1.0)])
    assert session.engine.queries.named("counting").error is None
    assert rows_of(session, "counting") == [(1, 9), (2, 1)]


def test_a_key_that_fails_fails_all_who_share_it(bench: Bench) -> None:
    session = bench.open()
    for name, aggregate in (("one", "COUNT(*)"), ("two", "MAX(v)")):
        session.create_query(f"SELECT 1 / v, {aggregate} FROM a GROUP BY 1 / v", name)
    session.create_query("SELECT COUNT(*) AS n FROM a", "other")
    bench.push(session, a=[(1, 0, 1.0)])
    assert [session.engine.queries.named(name).error is None for name in ("one", "two", "other")] == [
        False,
        False,
        True,
    ]
    assert rows_of(session, "other") == [(1,)]


def test_limits_hold_for_answers_and_for_pairs_of_each_query(bench: Bench) -> None:
    session = bench.open(factorize=False)
    session.create_query(COUNT, "few", max_results_per_batch=1)
    session.create_query(COUNT.replace("COUNT(*)", "MAX(a.v)"), "pairs", max_pairs_per_batch=3)
    session.create_query(COUNT.replace("COUNT(*)", "MIN(a.v)"), "free")
    bench.push(session, a=[(1, 0, 1.0)], b=[(1, 0, 1.0)] * 3)
    assert all(session.engine.queries.named(name).error is None for name in ("few", "pairs", "free"))
    bench.push(session, a=[(1, 0, 1.0), (2, 0, 1.0)], b=[(2, 0, 1.0)])
    assert "results" in (session.engine.queries.named("few").error or "")
    assert "pairs" in (session.engine.queries.named("pairs").error or "")
    assert len(rows_of(session, "free")) == 2


def test_groups_go_with_their_last_reader(bench: Bench) -> None:
    session = bench.open()
    session.create_query(COUNT, "one")
    session.create_query(COUNT.replace("COUNT(*)", "COUNT(DISTINCT a.v)"), "two")
    rows: list[Row] = [(1, 0, 1.0)]
    bench.push(session, a=rows, b=rows)
    session.drop_query("two")
    bench.push(session, a=rows, b=rows)
    assert {meta.store for meta in session.engine.head.state.buckets if "distinct" in meta.store} == set()
    assert rows_of(session, "one") == [(1, 4)]
    session.drop_query("one")
    bench.push(session, a=rows)
    assert not any(meta.store.startswith("groups/") for meta in session.engine.head.state.buckets)


def test_what_came_before_all_readers_goes(bench: Bench) -> None:
    session = bench.open()
    session.create_query(COUNT, "old")
    rows: list[Row] = [(1, 0, 1.0)]
    bench.push(session, a=rows, b=rows)
    session.create_query(COUNT, "young")
    session.drop_query("old")
    bench.push(session, a=rows, b=rows)
    (group,) = session.engine.plans.planned().plan.groups
    assert {meta.lower_batch for meta in session.engine.head.state.buckets if meta.store == group.id} == {1}
    assert rows_of(session, "young") == [(1, 3)]


@pytest.mark.parametrize("window", ["", ", window(ts, '10 seconds')"])
def test_approximate_counts_are_near_over_all_batches(bench: Bench, window: str) -> None:
    session = bench.open()
    session.create_query(f"SELECT k, approx_count_distinct(v) AS n FROM a GROUP BY k{window}", "q")
    for batch in range(4):
        bench.push(session, a=[(row % 2, batch * 300 + row, 1.0) for row in range(600)])
    bench.push(session, a=[(0, 0, 11.0)])
    counts = dict(rows_of(session, "q"))
    # Rows 0 to 1499, even ones in one group, odd ones in the other.
    assert all(abs(counts[key] - 750) <= 40 for key in (0, 1))


def test_merged_buckets_hold_each_group_once(bench: Bench) -> None:
    session = bench.open(merge_fanout=2, partitions=1)
    session.create_query("SELECT k, SUM(v) AS s, COUNT(DISTINCT v) AS d FROM a GROUP BY k", "q")
    for batch in range(9):
        bench.push(session, a=[(1, batch, 1.0), (2, 1, 1.0)])
    kept = [meta for meta in session.engine.head.state.buckets if meta.store.startswith("groups/")]
    assert max(meta.level for meta in kept) >= 2
    assert all(meta.rows == 2 for meta in kept if "distinct" not in meta.store)
    assert rows_of(session, "q") == [(1, 36, 9), (2, 9, 1)]


def test_a_restart_forgets_nothing(bench: Bench) -> None:
    session = bench.open()
    session.create_query(PER_WINDOW, "windows")
    session.create_query(COUNT, "counts")
    bench.push(session, a=[(1, 0, 1.0)], b=[(1, 0, 2.0)])
    session.close()
    session = bench.open()
    bench.push(session, a=[(1, 0, 3.0), (1, 0, 30.0)], b=[(1, 0, 30.0)])
    assert [row["n"] for _, row in answered(session, "windows")] == [2]
    assert rows_of(session, "counts") == [(1, 3)]


def test_a_window_is_not_answered_again_after_a_restart_with_more_lateness(bench: Bench) -> None:
    session = bench.open()
    session.create_query(PER_WINDOW, "q")
    bench.push(session, a=[(1, 0, 72.0), (1, 0, 100.0)], b=[(1, 0, 50.0), (1, 0, 71.0)])
    session.close()
    session = bench.open(lateness="30 seconds")
    # With the new lateness a would be at 70 s; but it was at 100 s, and closes windows with b, which comes to 95 s.
    bench.push(session, b=[(1, 0, 125.0)])
    windows = answered(session, "q")
    assert [(batch, row["n"]) for batch, row in windows] == [(1, 1)]
    for time in (126.0, 127.0):
        bench.push(session, b=[(1, 0, time)])
        assert answered(session, "q") == windows


def test_windows_that_an_idle_stream_holds_back_are_answered_by_the_next_batch(bench: Bench) -> None:
    now = [2e9]
    session = bench.open(clock=lambda: now[0], idle_timeout="10 seconds")
    session.create_query(PER_WINDOW, "q")
    bench.push(session, a=[(1, 0, 1.0)], b=[(1, 0, 2.0)])
    now[0] += 20.0
    bench.push(session, a=[(1, 0, 50.0)])
    assert answered(session, "q") == []
    now[0] += 1.0
    bench.push(session, a=[(1, 0, 51.0)])
    assert [(batch, row["n"]) for batch, row in answered(session, "q")] == [(2, 1)]


def test_groups_are_explained(bench: Bench) -> None:
    session = bench.open()
    one = session.create_query(COUNT, "one")
    session.create_query(PER_WINDOW, "two")
    bench.push(session, a=[(1, 0, 1.0)], b=[(1, 0, 1.0)])
    text = explain_plan(session.engine)
    assert "groups by a.k: keeps COUNT(*) for ever" in text
    assert "one group of all rows: keeps COUNT(*) in panes of 10 s until their windows close" in text
    said = explain_query(session.engine, one.id, "json")
    assert said["groups"]["partial_columns"] == ["rows()"]
    assert said["groups"]["stored_rows"] == 1


def test_a_query_for_groups_can_be_previewed(bench: Bench) -> None:
    session = bench.open()
    session.create_query(COUNT, "one")
    bench.push(session, a=[(1, 0, 1.0)], b=[(1, 0, 1.0)])
    said = explain_preview(session.engine, COUNT + " HAVING COUNT(*) > 1", "json")
    assert said["groups"]["queries"] == ["(this SELECT)", "one"]
    assert len(session.engine.plans.planned().plan.groups[0].users) == 1


def test_groups_count_as_what_their_only_reader_stores(bench: Bench) -> None:
    session = bench.open(max_query_bytes=20_000)
    session.create_query("SELECT k, SUM(v) AS s FROM a GROUP BY k", "small")
    session.create_query("SELECT v, k, MAX(ts) AS m FROM a GROUP BY v, k", "large")
    for batch in range(4):
        bench.push(session, a=[(row % 2, batch * 200 + row, 1.0) for row in range(200)])
    assert "max_query_bytes" in (session.engine.queries.named("large").error or "")
    assert session.engine.queries.named("small").error is None


def test_groups_cannot_be_backfilled(bench: Bench) -> None:
    session = bench.open()
    with pytest.raises(QueryError, match="cannot be backfilled"):
        session.create_query(COUNT, "q", backfill=True)


def test_a_query_over_one_stream_keeps_nothing(bench: Bench) -> None:
    session = bench.open()
    session.create_query("SELECT k, v FROM a WHERE v > 1", "q")
    bench.push(session, a=[(1, 1, 1.0), (2, 2, 1.0), (3, 3, 1.0)], splits=2)
    bench.push(session, a=[(4, 4, 2.0)])
    assert rows_of(session, "q") == [(2, 2), (3, 3), (4, 4)]
    assert session.engine.head.state.buckets == ()


@pytest.mark.parametrize(
    ("kind", "running", "windowed"),
    [
        ("LEFT", {1: 3, 2: 1, 3: 1}, [3, 2]),
        ("LEFT SEMI", {1: 1, 3: 1}, [1, 1]),
        ("LEFT ANTI", {2: 1}, [1]),
    ],
)
def test_groups_of_rows_without_a_partner(
    bench: Bench, kind: str, running: dict[int, int], windowed: list[int]
) -> None:
    join = JOIN.replace("JOIN", f"{kind} JOIN")
    session = bench.open()
    session.create_query(f"SELECT a.k, COUNT(*) AS n {join} GROUP BY a.k", "running")
    session.create_query(f"SELECT window.start AS w, COUNT(*) AS n {join} GROUP BY window(a.ts, '10 seconds')", "q")
    bench.push(session, a=[(1, 0, 1.0), (2, 0, 12.0)], b=[(1, 0, 1.0)])
    bench.push(session, a=[(3, 0, 12.0)], b=[(1, 0, 2.0), (1, 0, 3.0), (3, 0, 14.0)])
    bench.push(session, a=[(9, 0, 100.0)], b=[(8, 0, 100.0)])
    assert dict(rows_of(session, "running")) == running
    assert [row["n"] for _, row in sorted(answered(session, "q"), key=lambda row: str(row[1]["w"]))] == windowed
