"""SQL types as Spark names them."""

from __future__ import annotations

import re
from dataclasses import dataclass

INTEGER_NAMES = ("tinyint", "smallint", "int", "bigint")
FLOATING_NAMES = ("float", "double")
TYPE_NAMES = (
    "boolean",
    *INTEGER_NAMES,
    *FLOATING_NAMES,
    "decimal",
    "string",
    "date",
    "timestamp",
    "timestamp_ntz",
    "interval",  # day-time interval in microseconds; only inside time arithmetic
    "window",  # struct<start timestamp, end timestamp>, as Spark's window() yields
    "null",  # the type of a bare NULL before coercion
    "collated",  # text that Spark does not compare byte by byte; a column of it is there, but no query can use it
)
MAX_DECIMAL_PRECISION = 38


@dataclass(frozen=True)
class SqlType:
    """One SQL type; `precision` and `scale` are used by decimals only.

    >>> str(SqlType("decimal", 10, 2)), str(BIGINT)
    ('decimal(10,2)', 'bigint')
    """

    name: str
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.name not in TYPE_NAMES:
            raise ValueError(f"unknown SQL type {self.name!r}")
        if self.name == "decimal":
            if not 1 <= self.precision <= MAX_DECIMAL_PRECISION or not 0 <= self.scale <= self.precision:
                raise ValueError(f"no such decimal: ({self.precision},{self.scale})")
        elif self.precision or self.scale:
            raise ValueError(f"{self.name} has no precision or scale")

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name

    @property
    def is_integer(self) -> bool:
        return self.name in INTEGER_NAMES

    @property
    def is_floating(self) -> bool:
        return self.name in FLOATING_NAMES

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_floating or self.name == "decimal"

    @property
    def is_time(self) -> bool:
        return self.name in ("timestamp", "timestamp_ntz")


BOOLEAN = SqlType("boolean")
TINYINT = SqlType("tinyint")
SMALLINT = SqlType("smallint")
INT = SqlType("int")
BIGINT = SqlType("bigint")
FLOAT = SqlType("float")
DOUBLE = SqlType("double")
STRING = SqlType("string")
DATE = SqlType("date")
TIMESTAMP = SqlType("timestamp")
TIMESTAMP_NTZ = SqlType("timestamp_ntz")
INTERVAL = SqlType("interval")
WINDOW = SqlType("window")
NULL = SqlType("null")
COLLATED = SqlType("collated")
COLLATED_HINT = (
    "cast the column in the DataFrame before create_stream, df.withColumn('c', df.c.cast('string')): then its bytes"
    " are compared, spaces at the end included"
)

COLUMN_TYPES = (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)
"""What a stream's column may be, decimals aside."""
_TYPE_BY_TEXT = {str(sql_type): sql_type for sql_type in COLUMN_TYPES} | {
    "byte": TINYINT,
    "short": SMALLINT,
    "integer": INT,
    "long": BIGINT,
    "real": FLOAT,
    "timestamp_ltz": TIMESTAMP,
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d{1,2})(?:,(\d{1,2}))?\))?", re.ASCII)


def parse_column_type(text: str) -> SqlType:
    """The type of a column as Spark's DDL names it; a ValueError if no column can be of it.

    >>> str(parse_column_type("DECIMAL(10, 2)")), str(parse_column_type("long"))
    ('decimal(10,2)', 'bigint')
    """
    bare = "".join(text.lower().split())
    decimal = _DECIMAL.fullmatch(bare)
    if decimal:
        precision, scale = decimal.groups()
        return SqlType("decimal", int(precision or 10), int(scale or 0))
    if bare not in _TYPE_BY_TEXT:
        known = ", ".join(str(sql_type) for sql_type in COLUMN_TYPES)
        raise ValueError(f"{text!r} is no type of a column; types are: {known}, decimal(p,s)")
    return _TYPE_BY_TEXT[bare]
