"""Random joins over TPC-H, as CLASH draws them (section VII.A): a relation, then joins until the size is reached.

Joins are by primary and foreign keys and, beyond these, by columns of one type that have values in common: some by
which only the lowest keys find a partner, some by which rows find many. Every query is a tree of joins, so there are no
cross products, and its number of results (and that of every step on the way) is counted before it is taken. Answers
are whole tuples, and so are the rows that stores keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.options import BenchError
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.tpch.tables import JOIN_COLUMNS_BY_TABLE

SIZE = 5
"""The paper does not say; with five the tables of the queries overlap about as much as its own (3.1 and 5.3 times)."""
MAX_DRAWS = 2_000


@dataclass(frozen=True)
class TableJoin:
    """An equality between columns of two tables; TPC-H's columns name their table by a prefix."""

    a_column: str
    b_column: str

    @property
    def tables(self) -> frozenset[str]:
        return frozenset({table_of(self.a_column), table_of(self.b_column)})

    def column_of(self, table: str) -> str:
        return self.a_column if table_of(self.a_column) == table else self.b_column

    def other(self, table: str) -> str:
        (other,) = self.tables - {table}
        return other

    def __str__(self) -> str:
        return f"{table_of(self.a_column)}.{self.a_column} = {table_of(self.b_column)}.{self.b_column}"


KEY_JOINS = (
    TableJoin("n_regionkey", "r_regionkey"),
    TableJoin("s_nationkey", "n_nationkey"),
    TableJoin("c_nationkey", "n_nationkey"),
    TableJoin("ps_partkey", "p_partkey"),
    TableJoin("ps_suppkey", "s_suppkey"),
    TableJoin("o_custkey", "c_custkey"),
    TableJoin("l_orderkey", "o_orderkey"),
    TableJoin("l_partkey", "p_partkey"),
    TableJoin("l_suppkey", "s_suppkey"),
    TableJoin("l_partkey", "ps_partkey"),
)
COMPATIBLE_JOINS = (
    TableJoin("c_custkey", "n_nationkey"),
    TableJoin("c_nationkey", "s_nationkey"),
    TableJoin("c_custkey", "s_suppkey"),
    TableJoin("p_partkey", "s_suppkey"),
    TableJoin("p_size", "n_nationkey"),
    TableJoin("o_custkey", "s_suppkey"),
    TableJoin("o_custkey", "p_partkey"),
    TableJoin("o_orderkey", "p_partkey"),
    TableJoin("l_orderkey", "c_custkey"),
    TableJoin("l_linenumber", "r_regionkey"),
)
JOINS = (*KEY_JOINS, *COMPATIBLE_JOINS)


@dataclass(frozen=True)
class TableQuery:
    """A tree of joins; each one after the first adds one table to those before it."""

    joins: tuple[TableJoin, ...]

    def __post_init__(self) -> None:
        joined = set(self.joins[0].tables) if self.joins else set()
        for join in self.joins[1:]:
            if len(join.tables & joined) != 1:
                raise ValueError(f"{join} does not add one table to {sorted(joined)}")
            joined |= join.tables
        if not joined:
            raise ValueError("a query needs a join")

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(sorted({table for join in self.joins for table in join.tables}))

    @property
    def sql(self) -> str:
        return f"SELECT * FROM {', '.join(self.tables)} WHERE {' AND '.join(map(str, self.joins))}"


def table_of(column: str) -> str:
    return next(table for table, columns in JOIN_COLUMNS_BY_TABLE.items() if column in columns)


def count_sql(joins: Sequence[TableJoin]) -> str:
    """The number of results of a tree of joins, by counts per key from the leaves to the root: no pair is formed."""
    root = table_of(joins[0].a_column)
    sources, weight = _weighted(root, joins)
    return f"SELECT CAST(coalesce(sum({weight}), 0) AS BIGINT) FROM {sources}"


def _weighted(table: str, joins: Sequence[TableJoin]) -> tuple[str, str]:
    """The table with a weight per row: how many results of the joins below it the row is part of."""
    sources, weights = table, ["CAST(1 AS DOUBLE)"]
    for join in joins:
        if table not in join.tables:
            continue
        child = join.other(table)
        below, weight = _weighted(child, _joins_beyond(child, join, joins))
        column = join.column_of(child)
        counted = f"(SELECT {column} AS key, sum({weight}) AS weight FROM {below} GROUP BY {column})"
        sources += f" JOIN {counted} AS {child}_counted ON {child}_counted.key = {table}.{join.column_of(table)}"
        weights.append(f"{child}_counted.weight")
    return sources, " * ".join(weights)


def _joins_beyond(table: str, taken: TableJoin, joins: Sequence[TableJoin]) -> list[TableJoin]:
    """The joins that hang on `table` when `taken` is cut."""
    reached, beyond, open_joins = {table}, [], [join for join in joins if join != taken]
    while found := [join for join in open_joins if join.tables & reached]:
        beyond += found
        reached |= {name for join in found for name in join.tables}
        open_joins = [join for join in open_joins if join not in found]
    return beyond


def draw_queries(duckdb: DuckDbViews, max_results: int, seed: int, *, plain: int, overlapping: int) -> list[TableQuery]:
    """`plain` random queries, then `overlapping` that begin with a join of one of these; no two are the same.

    None is empty, and none has more than `max_results` results, nor has any step on the way to it.
    """
    rng = Random(seed)
    queries: list[TableQuery] = []
    counts: dict[frozenset[TableJoin], int] = {}
    for _ in range(MAX_DRAWS):
        if len(queries) == plain + overlapping:
            return queries
        first = rng.choice(rng.choice(queries[:plain]).joins) if len(queries) >= plain else None
        joins = _draw_joins(rng, SIZE, first)
        is_new = frozenset(joins) not in {frozenset(query.joins) for query in queries}
        if is_new and all(_is_fit(duckdb, joins[:length], max_results, counts) for length in range(1, len(joins) + 1)):
            queries.append(TableQuery(joins))
    raise BenchError(f"only {len(queries)} random queries have results, and not too many", hint="try another --seed")


def _draw_joins(rng: Random, size: int, first: TableJoin | None) -> tuple[TableJoin, ...]:
    joins = [] if first is None else [first]
    joined = set(first.tables) if first else {rng.choice(sorted(JOIN_COLUMNS_BY_TABLE))}
    while len(joined) < size:
        join = rng.choice([join for join in JOINS if len(join.tables & joined) == 1])
        joins.append(join)
        joined |= join.tables
    return tuple(joins)


def _is_fit(
    duckdb: DuckDbViews, joins: tuple[TableJoin, ...], max_results: int, counts: dict[frozenset[TableJoin], int]
) -> bool:
    key = frozenset(joins)
    if key not in counts:
        counts[key] = duckdb.number(count_sql(joins))
    return 0 < counts[key] <= max_results
