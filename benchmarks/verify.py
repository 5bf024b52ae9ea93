"""Are two answers the same? Count and an order-independent checksum, by arithmetic that all systems share.

The checksum of a row mixes all its columns by multiplication modulo a prime, so that swapping partners
between two rows changes it, which a plain sum of columns would not notice. The same SQL text runs in
Spark and DuckDB: no product exceeds 64 bits. What is no number becomes one by `number_sql`; texts of a row together,
by their hash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

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


def number_sql(kind_by_column: Mapping[str, str], *, is_spark: bool) -> list[str]:
    """A BIGINT per column, and one for all texts; kinds as the system names them, whatever their case."""
    values = []
    texts = []
    for column, kind in kind_by_column.items():
        name = kind.lower()
        if name.startswith("timestamp"):
            values.append(f"unix_micros({column})" if is_spark else f"epoch_us({column})")
        elif name.startswith("decimal"):
            values.append(f"CAST({column} * 100 AS BIGINT)")
        elif name == "date":
            values.append(
                f"CAST(unix_date({column}) AS BIGINT)" if is_spark else f"date_diff('day', DATE '1970-01-01', {column})"
            )
        elif name in ("string", "varchar"):
            texts.append(column)
        else:
            values.append(f"CAST({column} AS BIGINT)")
    if texts:
        digits = f"substr(md5(concat_ws('|', {', '.join(texts)})), 1, 8)"
        values.append(f"CAST(conv({digits}, 16, 10) AS BIGINT)" if is_spark else f"CAST('0x' || {digits} AS BIGINT)")
    return values


def unequal_queries(expected: Mapping[str, Answer], observed: Mapping[str, Answer]) -> list[str]:
    """Names of the queries whose answers differ or are missing on one side."""
    names = expected.keys() | observed.keys()
    return sorted(name for name in names if expected.get(name) != observed.get(name))


def same_rows(expected: pa.Table, observed: pa.Table) -> bool:
    """The same rows however often each, whatever the columns' names; numbers are equal by value, not by type.

    >>> same_rows(pa.table({"n": [5]}), pa.table({"total": pa.array([5]).cast(pa.decimal128(38, 2))}))
    True
    """
    return _row_counts(expected) == _row_counts(observed)


def _row_counts(table: pa.Table) -> Counter[tuple[object, ...]]:
    columns = [
        column.cast(pa.timestamp("us")).cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in table.columns
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))
