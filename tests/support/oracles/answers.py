"""What the engine must answer, found without it: by DuckDB's batch SQL and by nested loops.

Both know only rows and queries, no stores, plans or batches beyond one rule: the answers of a query
that took effect at batch b, was dropped at batch d and is complete from batch c are

    Q(rows of batches [c, d))  minus  Q(rows of batches [c, b))      as multisets,

because a join only ever adds results when rows are added: what the second has already is exactly
what has no member in b or later.

The groups of an aggregation are made of the same joined rows, those whose newest member came in [b, d). The loops
know that batch of every row; DuckDB does not, so of aggregations it is asked those that were there from the start.
Of windows only those that are closed after the last batch are answered: the texts for other engines have
`CLOSED_UNTIL` where the bound goes.

DuckDB gets the query's own text and knows nothing of our front end. The nested loops get the bound
query, so they also say whether the front end understood WITHIN and windows as DuckDB was told.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from dovetail.query.join_query import JoinQuery
from tests.support.cases import (
    CLOSED_UNTIL,
    EngineCase,
    KeptRows,
    QueryCase,
    StreamCase,
    keep_rows_in_time,
    watermarks_after,
)
from tests.support.oracles.closing import closed_until
from tests.support.oracles.groups import group_rows
from tests.support.oracles.nested_loops import filtered, join_by_nested_loops, joined_rows

Answers = Counter[tuple[Any, ...]]

# Spark's window(): every [start, start + size) that holds the time, start = offset + k * slide.
HOP_WINDOWS = """
CREATE OR REPLACE MACRO hop_windows(moment, size, slide, start_offset) AS
  list_transform(
    range((epoch_us(moment) - start_offset - size) // slide + 1, (epoch_us(moment) - start_offset) // slide + 1),
    lambda k: {
      'start': make_timestamp(start_offset + k * slide),
      'end': make_timestamp(start_offset + k * slide + size)
    }
  )
"""


def answers_of_rows(rows: Iterable[Iterable[Any]]) -> Answers:
    """Rows as a multiset in which equal answers are equal values, whatever engine made them."""
    return Counter(tuple(map(_normal, row)) for row in rows)


def answers_of_table(table: pa.Table) -> Answers:
    columns = [column.to_pylist() for column in table.columns]
    return answers_of_rows(zip(*columns, strict=True))


def _normal(value: Any) -> Any:
    if isinstance(value, float):
        # Engines may add in another order; thirteen digits are the same in any. Minus zero is zero.
        return "NaN" if math.isnan(value) else float(f"{value:.13g}") + 0.0
    if isinstance(value, Decimal):
        return value.normalize() + 0
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dict):
        return tuple(_normal(part) for part in value.values())
    return value


ARRIVAL = "arrival batch"
"""Name of the extra column that holds the batch in which a row came."""


class DuckDbOracle:
    """Batch answers of one case by DuckDB."""

    def __init__(self, case: EngineCase, kept: KeptRows | None = None) -> None:
        self._case = case
        self._kept = kept or keep_rows_in_time(case)
        self._found: dict[tuple[str, int, int], Answers] = {}

    def expected(self, query: QueryCase, complete_from: int) -> Answers:
        until = len(self._case.batches) if query.dropped_at is None else query.dropped_at
        return self.answers(query.duckdb_sql, complete_from, until) - self.answers(
            query.duckdb_sql, complete_from, query.created_at
        )

    def answers(self, sql: str, since: int, until: int) -> Answers:
        """Batch SQL over the rows that arrived in batches [since, until)."""
        if since >= until:
            return Counter()
        key = (sql, since, until)
        if key not in self._found:
            connection = _connection()
            for stream in self._case.streams:
                connection.register(stream.name, self._table(stream, since, until))
            self._found[key] = answers_of_rows(connection.execute(sql).fetchall())
        return self._found[key]

    def groups(self, query: QueryCase, bound: JoinQuery, until: int) -> Answers:
        """Batch SQL of an aggregation over the rows before batch `until`."""
        bound_us = closed_until(bound, watermarks_after(self._case, until))
        moment = "NULL" if bound_us is None else f"make_timestamp({bound_us})"
        return self.answers(query.duckdb_sql.replace(CLOSED_UNTIL, moment), 0, until)

    def _table(self, stream: StreamCase, since: int, until: int) -> pa.Table:
        # Naive timestamps: DuckDB's arithmetic on zoned ones needs an extension.
        return _without_zones(rows_between(stream, self._kept, since, until))


class NestedLoopOracle:
    """Batch answers of one case by nested loops over the bound query."""

    def __init__(self, case: EngineCase, kept: KeptRows | None = None) -> None:
        self._case = case
        self._kept = kept or keep_rows_in_time(case)

    def expected(self, query: QueryCase, bound: JoinQuery, complete_from: int) -> Answers:
        until = len(self._case.batches) if query.dropped_at is None else query.dropped_at
        if bound.aggregation is not None:
            return self.groups(bound, complete_from, query.created_at, until)
        return self.answers(bound, complete_from, until) - self.answers(bound, complete_from, query.created_at)

    def answers(self, bound: JoinQuery, since: int, until: int) -> Answers:
        if since >= until:
            return Counter()
        tables = {s.name: rows_between(s, self._kept, since, until) for s in self._case.streams}
        return answers_of_table(join_by_nested_loops(bound, tables, self._event_times()))

    def groups(self, bound: JoinQuery, since: int, created_at: int, until: int) -> Answers:
        """Groups of the joined rows over batches [since, until) that have a member of `created_at` or later."""
        if created_at >= until:
            return Counter()
        tables = {s.name: self._with_arrivals(s, since, until) for s in self._case.streams}
        columns, row_count = joined_rows(bound, tables, self._event_times())
        arrivals = [columns[relation.alias, ARRIVAL].to_numpy() for relation in bound.relations]
        columns, row_count = filtered(columns, np.max(arrivals, axis=0) >= created_at)
        bound_us = closed_until(bound, watermarks_after(self._case, until))
        return answers_of_table(group_rows(bound, columns, row_count, bound_us))

    def _event_times(self) -> dict[str, str | None]:
        return {s.name: s.event_time for s in self._case.streams}

    def _with_arrivals(self, stream: StreamCase, since: int, until: int) -> pa.Table:
        counts = [len(rows) for rows in self._kept.rows[stream.name][since:until]]
        arrivals = np.repeat(np.arange(since, until), counts)
        table = rows_between(stream, self._kept, since, until)
        return table.append_column(ARRIVAL, pa.array(arrivals, pa.int64()))


def rows_between(stream: StreamCase, kept: KeptRows, since: int, until: int) -> pa.Table:
    batches = kept.rows[stream.name][since:until]
    return stream.table(tuple(row for batch in batches for row in batch))


def _without_zones(table: pa.Table) -> pa.Table:
    for position, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            naive = table.column(position).cast(pa.timestamp("us"))
            table = table.set_column(position, field.name, naive)
    return table


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": "1"})
    connection.execute(HOP_WINDOWS)
    return connection
