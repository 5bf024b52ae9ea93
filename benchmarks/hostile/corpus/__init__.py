"""All hostile queries, by what they attack."""

from __future__ import annotations

from benchmarks.hostile.corpus import bind, bombs, constants, grammar, groups, joins, row_errors, texts, times, values
from benchmarks.hostile.records import HostileQuery

QUERIES: tuple[HostileQuery, ...] = (
    *grammar.QUERIES,
    *texts.QUERIES,
    *bind.QUERIES,
    *constants.QUERIES,
    *row_errors.QUERIES,
    *values.QUERIES,
    *times.QUERIES,
    *joins.QUERIES,
    *groups.QUERIES,
    *bombs.QUERIES,
)
