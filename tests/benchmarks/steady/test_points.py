"""The suite `steady`: its queries, its points, and that it notices a wrong answer."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from benchmarks.data.workloads import STREAM_NAMES, rows_of_file
from benchmarks.options import BenchError
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.steady.check import chosen_queries, views_of_tables, wrong_answers
from benchmarks.steady.in_process import main
from benchmarks.steady.point import Point

KINDS = {"template", "residual", "theta", "outer", "aggregate", "self"}
BATCHES = 8
SMALL = Point(9, 500, is_mixed=True)


def views(point: Point) -> DuckDbViews:
    workload = point.workload(BATCHES, seed=1)
    return views_of_tables(
        {
            name: [rows_of_file(workload, at, number) for number in range(BATCHES)]
            for at, name in enumerate(STREAM_NAMES)
        },
        threads=1,
    )


def test_the_mix_has_every_kind_and_the_same_seed_the_same_queries() -> None:
    queries = Point(500, is_mixed=True).query_by_name(seed=1)
    counts = Counter(query.kind for query in queries.values())
    assert counts.keys() == KINDS
    assert min(counts.values()) >= 500 // 10
    assert queries == Point(500, is_mixed=True).query_by_name(seed=1)


@pytest.mark.parametrize("queries", [9, 50, 500, 2000])
def test_every_kind_is_among_the_queries_that_are_checked(queries: int) -> None:
    drawn = Point(queries, is_mixed=True).query_by_name(seed=1)
    chosen = chosen_queries(drawn)
    assert {drawn[name].kind for name in chosen} == KINDS
    assert len(chosen) <= 50


def test_longer_windows_have_as_many_times_more_keys() -> None:
    usual, longer = Point(), Point(window_scale=8)
    assert longer.key_range == 8 * usual.key_range
    assert longer.longest_window_s == 8 * usual.longest_window_s
    assert "INTERVAL 24 SECONDS" in " ".join(query.sql for query in longer.query_by_name(1).values())


def test_a_point_without_a_query_and_a_mix_of_long_windows_are_refused() -> None:
    with pytest.raises(BenchError, match="needs a query"):
        Point(0)
    with pytest.raises(BenchError, match="windows of 1 to 3 s"):
        Point(is_mixed=True, window_scale=2)


def test_an_answer_that_lacks_a_row_is_wrong_unless_the_row_was_not_decided_yet() -> None:
    queries = SMALL.query_by_name(seed=1)
    with views(SMALL) as duckdb:
        right = {name: duckdb.rows(query.judged_sql) for name, query in queries.items()}
        assert not wrong_answers(duckdb, SMALL, BATCHES, queries, right.__getitem__)
        for name, query in queries.items():
            lacking = lambda _name, table=right[name]: table.slice(1)  # noqa: E731 - it binds the table of this turn
            assert wrong_answers(duckdb, SMALL, BATCHES, {name: query}, lacking).keys() == {name}
        outer = next(name for name, query in queries.items() if query.kind == "outer")
        undecided = right[outer].sort_by("decided_at").slice(0, right[outer].num_rows - 1)
        assert not wrong_answers(duckdb, SMALL, BATCHES, {outer: queries[outer]}, lambda _name: undecided)


def test_partners_that_are_swapped_are_noticed() -> None:
    query = SMALL.query_by_name(seed=1)["q0000"]
    with views(SMALL) as duckdb:
        right = duckdb.rows(query.judged_sql)
        assert right.num_rows > 1
        swapped = right.set_column(1, right.column_names[1], pa.chunked_array([right.column(1).to_pylist()[::-1]]))
        assert wrong_answers(duckdb, SMALL, BATCHES, {"q0000": query}, lambda _name: swapped)


def test_a_point_runs_in_this_process_with_right_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["9", "500", str(BATCHES), "--mixed", "--profile", "--no-merges"]) == 0
    printed = capsys.readouterr().out
    assert "9 of 9 queries that were checked equal DuckDB's" in printed
    assert f"batch   {BATCHES - 1}:" in printed
    assert "driver: commit" in printed
    assert "tasks: hop 1" in printed
    assert "function calls" in printed
