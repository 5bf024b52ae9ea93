"""TPC-H's tables as streams, and random joins over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.options import BenchError
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.tpch.queries import JOINS, SIZE, TableJoin, TableQuery, count_sql, draw_queries
from benchmarks.tpch.tables import JOIN_COLUMNS_BY_TABLE, KEY_BY_TABLE, TpchFiles, select_sql, write_tpch

BATCHES = 4
MAX_RESULTS = 200_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TpchFiles:
    return write_tpch(0.01, BATCHES, tmp_path_factory.mktemp("tpch"))


@pytest.fixture
def duckdb(files: TpchFiles) -> Iterator[DuckDbViews]:
    with DuckDbViews(select_sql(files), threads=1) as views:
        yield views


def test_every_batch_has_the_same_share_of_every_table(files: TpchFiles) -> None:
    for table, rows in files.rows_by_table.items():
        shares = [files.batch(table, number).num_rows for number in range(BATCHES)]
        assert sum(shares) == rows
        assert max(shares) - min(shares) <= 1


def test_keys_tell_all_rows_of_a_table_apart(files: TpchFiles, duckdb: DuckDbViews) -> None:
    for table, rows in files.rows_by_table.items():
        key = ", ".join(KEY_BY_TABLE[table])
        assert duckdb.number(f"SELECT count(*) FROM (SELECT DISTINCT {key} FROM {table})") == rows


def test_a_prefix_has_the_first_batches(files: TpchFiles, tmp_path: Path) -> None:
    part = files.prefix(2, tmp_path)
    assert part.rows_by_table["lineitem"] == sum(files.batch("lineitem", number).num_rows for number in range(2))
    assert part.batch("orders", 1) == files.batch("orders", 1)


def test_every_join_connects_two_tables_that_have_values_in_common(duckdb: DuckDbViews) -> None:
    for join in JOINS:
        assert len(join.tables) == 2
        assert duckdb.number(count_sql((join,))) > 0


def test_the_same_seed_draws_the_same_queries_and_another_one_others(duckdb: DuckDbViews) -> None:
    first = draw_queries(duckdb, MAX_RESULTS, 1, plain=5, overlapping=5)
    assert draw_queries(duckdb, MAX_RESULTS, 1, plain=5, overlapping=5) == first
    assert draw_queries(duckdb, MAX_RESULTS, 2, plain=5, overlapping=5) != first


@pytest.mark.parametrize("seed", range(8))
def test_drawn_queries_differ_are_connected_and_have_some_results_but_not_too_many(
    duckdb: DuckDbViews, seed: int
) -> None:
    queries = draw_queries(duckdb, MAX_RESULTS, seed, plain=5, overlapping=5)
    assert len({frozenset(query.joins) for query in queries}) == 10
    for query in queries:
        assert len(query.tables) == SIZE
        assert len(query.joins) == len(query.tables) - 1
        assert 0 < duckdb.number(f"SELECT count(*) FROM ({query.sql})") <= MAX_RESULTS


def test_a_table_without_rows_is_in_no_query(files: TpchFiles) -> None:
    selects = select_sql(files)
    with DuckDbViews(selects | {"nation": f"{selects['nation']} WHERE false"}, threads=1) as duckdb:
        queries = draw_queries(duckdb, MAX_RESULTS, 1, plain=5, overlapping=5)
    assert all("nation" not in query.tables for query in queries)


def test_overlapping_queries_take_a_join_from_a_plain_one(duckdb: DuckDbViews) -> None:
    queries = draw_queries(duckdb, MAX_RESULTS, 3, plain=5, overlapping=5)
    plain_joins = {join for query in queries[:5] for join in query.joins}
    assert all(query.joins[0] in plain_joins for query in queries[5:])


@pytest.mark.parametrize("seed", range(4))
def test_results_are_counted_without_being_formed(duckdb: DuckDbViews, seed: int) -> None:
    for query in draw_queries(duckdb, MAX_RESULTS, seed, plain=5, overlapping=5):
        counted = duckdb.number(count_sql(query.joins))
        assert counted == duckdb.number(f"SELECT count(*) FROM ({query.sql})")


def test_queries_that_cannot_be_drawn_are_an_error(duckdb: DuckDbViews) -> None:
    with pytest.raises(BenchError, match="random queries"):
        draw_queries(duckdb, 0, 1, plain=1, overlapping=0)


@pytest.mark.parametrize(
    "joins",
    [
        (),
        (TableJoin("n_regionkey", "r_regionkey"), TableJoin("o_custkey", "c_custkey")),
        (TableJoin("c_nationkey", "n_nationkey"), TableJoin("c_custkey", "n_nationkey")),
    ],
    ids=["no join", "a cross product", "no new table"],
)
def test_a_query_is_a_tree_of_joins(joins: tuple[TableJoin, ...]) -> None:
    with pytest.raises(ValueError, match=r"needs a join|does not add"):
        TableQuery(joins)


def test_every_column_belongs_to_one_table() -> None:
    columns = [column for columns in JOIN_COLUMNS_BY_TABLE.values() for column in columns]
    assert len(columns) == len(set(columns))
