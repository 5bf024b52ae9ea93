"""Are two answers the same? Count and an order-independent checksum, by arithmetic that all systems share.

The checksum of a row mixes all its columns by multiplication modulo a prime, so that swapping partners
between two rows changes it, which a plain sum of columns would not notice. The same SQL text runs in
Spark and DuckDB: no product exceeds 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PRIME = 2_147_483_647
MULTIPLIERS = (1_000_003, 998_244_353, 1_103_515_245, 1_234_567_891, 1_566_083_941)


@dataclass(frozen=True)
class Answer:
    """What one query returned: enough to tell whether another system returned the same multiset of rows."""

    row_count: int
    checksum: int


def checksum_sql(value_sql: Sequence[str]) -> str:
    """The checksum as an aggregate over the columns' values; each must be a BIGINT expression.

    >>> checksum_sql(["k"])
    'coalesce(sum((k % 2147483647 * 1000003 + 1) % 2147483647), 0)'
    """
    mixed = ""
    for position, value in enumerate(value_sql):
        multiplier = MULTIPLIERS[position % len(MULTIPLIERS)]
        part = f"({value} % {PRIME} * {multiplier} + {position + 1}) % {PRIME}"
        mixed = f"({mixed}) * ({part}) % {PRIME}" if mixed else part
    return f"coalesce(sum({mixed}), 0)"


def unequal_queries(expected: Mapping[str, Answer], observed: Mapping[str, Answer]) -> list[str]:
    """Names of the queries whose answers differ or are missing on one side."""
    names = expected.keys() | observed.keys()
    return sorted(name for name in names if expected.get(name) != observed.get(name))
