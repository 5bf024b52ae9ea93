"""Queries of every kind, each as it stands in Dovetail and as DuckDB understands it.

The kinds come in turn: AJoin's template, residuals, conditions that are no equality, outer joins, aggregates and
self-joins; of each kind about as many rows find a partner as of the template.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.adhoc.queries import WINDOWS_S, template_queries
from benchmarks.data.workloads import ATTRIBUTE_COUNT, time_bound

SHARE_OF_PATTERN = 0.5
DECIDED_AT = "decided_at"
"""The output column that says from which watermark on an answer is final, in answers that wait for one."""
GROUPS = 10
BAND = 1


@dataclass(frozen=True)
class SteadyQuery:
    """`duckdb_sql` is empty where DuckDB understands `sql`. An answer that `waits` has the column `DECIDED_AT`."""

    kind: str
    sql: str
    duckdb_sql: str = ""
    waits: bool = False

    @property
    def judged_sql(self) -> str:
        return self.duckdb_sql or self.sql


def mixed_queries(key_range: int, seed: int) -> Iterator[SteadyQuery]:
    """Queries without end, the kinds in turn."""
    templates = template_queries(key_range, seed, SHARE_OF_PATTERN)
    draw = _Draw(key_range, random.Random(seed))
    while True:
        yield SteadyQuery("template", next(templates).sql)
        yield SteadyQuery("residual", draw.with_residual(next(templates).sql))
        yield SteadyQuery("theta", draw.band())
        yield draw.outer()
        yield draw.window_aggregate()
        yield SteadyQuery("self", draw.self_join())
        yield SteadyQuery("template", next(templates).sql)
        yield SteadyQuery("theta", draw.key_and_inequality())
        yield SteadyQuery("aggregate", draw.running_aggregate())


@dataclass(frozen=True)
class _Draw:
    key_range: int
    random_numbers: random.Random

    def with_residual(self, sql: str) -> str:
        """Two pairs of three pass."""
        return f"{sql} AND (a.{self._column()} + b.{self._column()}) % 3 <> 0"

    def band(self) -> str:
        left, right = self._column(), self._column()
        on = f"a.{left} BETWEEN b.{right} - {BAND} AND b.{right} + {BAND}"
        return f"SELECT a.id AS a_id, b.id AS b_id FROM a JOIN b ON {on} AND {self._window('a', 'b')} {self._where()}"

    def key_and_inequality(self) -> str:
        on = f"b.{self._column()} = c.{self._column()} AND b.{self._column()} < c.{self._column()}"
        return (
            f"SELECT b.id AS b_id, c.id AS c_id FROM b JOIN c ON {on} AND {self._window('b', 'c')} "
            f"{self._where('b', 'c')}"
        )

    def outer(self) -> SteadyQuery:
        sql = (
            f"SELECT a.id AS a_id, coalesce(b.id, -1) AS b_id, a.ts AS {DECIDED_AT} FROM a LEFT JOIN b "
            f"ON a.{self._column()} = b.{self._column()} AND {self._window('a', 'b')} "
            f"AND b.{self._half()} WHERE a.{self._half()}"
        )
        return SteadyQuery("outer", sql, waits=True)

    def window_aggregate(self) -> SteadyQuery:
        group = f"a.{self._column()} % {GROUPS}"
        joined = f"FROM a JOIN b ON {self._equality()} AND {self._window('a', 'b')} {self._where()}"
        total = f"SUM(b.{self._column()})"
        ours = (
            f"SELECT window.end AS {DECIDED_AT}, {group} AS g, COUNT(*) AS n, {total} AS total {joined} "
            f"GROUP BY {group}, window(a.ts, '1 second')"
        )
        end = "time_bucket(INTERVAL 1 SECOND, a.ts) + INTERVAL 1 SECOND"
        theirs = (
            f"SELECT {end} AS {DECIDED_AT}, {group} AS g, COUNT(*) AS n, CAST({total} AS BIGINT) AS total {joined} "
            "GROUP BY ALL"
        )
        return SteadyQuery("aggregate", ours, theirs, waits=True)

    def running_aggregate(self) -> str:
        group = f"a.{self._column()} % {GROUPS}"
        joined = f"FROM a JOIN b ON {self._equality()} AND {self._window('a', 'b')} {self._where()}"
        return f"SELECT {group} AS g, COUNT(*) AS n, MAX(b.{self._column()}) AS largest {joined} GROUP BY {group}"

    def self_join(self) -> str:
        return (
            f"SELECT p.id AS p_id, q.id AS q_id FROM a AS p JOIN a AS q ON p.{self._column()} = q.{self._column()} "
            f"AND {self._window('p', 'q')} {self._where('p', 'q')}"
        )

    def _equality(self) -> str:
        return f"a.{self._column()} = b.{self._column()}"

    def _window(self, left: str, right: str) -> str:
        return time_bound(left, right, self.random_numbers.choice(WINDOWS_S))

    def _where(self, left: str = "a", right: str = "b") -> str:
        return f"WHERE {left}.{self._half()} AND {right}.{self._half()}"

    def _half(self) -> str:
        constant = self.random_numbers.randrange(int(self.key_range * 0.4), int(self.key_range * 0.6))
        return f"{self._column()} {self.random_numbers.choice('<>')} {constant}"

    def _column(self) -> str:
        return f"x{self.random_numbers.randrange(ATTRIBUTE_COUNT)}"
