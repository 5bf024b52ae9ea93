"""Are the answers of some queries right? DuckDB runs them over the same rows.

Rows without a partner and closed windows are answered only when the watermark has passed them: of such queries the
answers up to a horizon are compared, before which everything is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa

from benchmarks.data.workloads import EVENT_TIME_START_US
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.steady.mixed_queries import DECIDED_AT, SteadyQuery
from benchmarks.steady.point import Point

LATENESS_S = 1
CHECKED_QUERIES = 24


def chosen_queries(query_by_name: Mapping[str, SteadyQuery], count: int = CHECKED_QUERIES) -> list[str]:
    """As many of each kind, spread over those that there are."""
    names_by_kind: dict[str, list[str]] = {}
    for name, query in query_by_name.items():
        names_by_kind.setdefault(query.kind, []).append(name)
    of_each = max(1, count // len(names_by_kind))
    chosen = [name for names in names_by_kind.values() for name in names[:: -(-len(names) // of_each)]]
    return sorted(chosen)


def wrong_answers(
    duckdb: DuckDbViews,
    point: Point,
    batches: int,
    chosen: Mapping[str, SteadyQuery],
    answer_of: Callable[[str], pa.Table],
) -> dict[str, str]:
    """By name what differs, after so many batches; the views of `duckdb` have the rows of these batches alone."""
    horizon = _horizon(point, batches)
    wrong = {}
    for name, query in chosen.items():
        condition = f" WHERE {DECIDED_AT} <= {horizon}" if query.waits else ""
        expected = duckdb.answer(f"SELECT * FROM ({query.judged_sql}){condition}")
        duckdb.add_table("answered", _with_plain_times(answer_of(name)))
        observed = duckdb.answer(f"SELECT * FROM answered{condition}")
        if observed != expected:
            wrong[name] = f"{query.kind}: {observed}, expected {expected}"
    return wrong


def _horizon(point: Point, batches: int) -> str:
    """The last batch's watermark less what a partner may be later, and a second to spare."""
    decided_s = batches - LATENESS_S - point.longest_window_s - 1
    time = datetime.fromtimestamp(EVENT_TIME_START_US / 1e6 + decided_s, UTC)
    return f"TIMESTAMP '{time:%Y-%m-%d %H:%M:%S}'"


def views_of_tables(tables: Mapping[str, Sequence[pa.Table]], threads: int) -> DuckDbViews:
    duckdb = DuckDbViews({}, threads)
    for name, parts in tables.items():
        duckdb.add_table(name, _with_plain_times(pa.concat_tables(parts)))
    return duckdb


def _with_plain_times(table: pa.Table) -> pa.Table:
    """In UTC: DuckDB compares times with a zone through a calendar."""
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pa.timestamp("us")))
    return table
