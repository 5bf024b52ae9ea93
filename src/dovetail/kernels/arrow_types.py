"""SQL types as Arrow types and back."""

from __future__ import annotations

import pyarrow as pa

from dovetail.core.errors import StreamError
from dovetail.query.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    WINDOW,
    SqlType,
)

_ARROW_BY_SQL: dict[SqlType, pa.DataType] = {
    BOOLEAN: pa.bool_(),
    TINYINT: pa.int8(),
    SMALLINT: pa.int16(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
    DATE: pa.date32(),
    TIMESTAMP_NTZ: pa.timestamp("us"),
    INTERVAL: pa.duration("us"),
    NULL: pa.null(),
}
_SQL_BY_ARROW = {
    **{arrow: sql for sql, arrow in _ARROW_BY_SQL.items()},
    pa.large_string(): STRING,
    pa.string_view(): STRING,
}


def arrow_type(sql_type: SqlType, timezone: str = "UTC") -> pa.DataType:
    """The Arrow type of a column; `timezone` labels timestamps and changes no value."""
    if sql_type == TIMESTAMP:
        return pa.timestamp("us", tz=timezone)
    if sql_type == WINDOW:
        moment = pa.timestamp("us", tz=timezone)
        return pa.struct([("start", moment), ("end", moment)])
    if sql_type.name == "decimal":
        return pa.decimal128(sql_type.precision, sql_type.scale)
    return _ARROW_BY_SQL[sql_type]


def sql_type_of(data_type: pa.DataType) -> SqlType:
    """The SQL type of a stream's column; refuses what Dovetail cannot compute with."""
    if pa.types.is_timestamp(data_type):
        if data_type.unit != "us":
            raise StreamError(f"timestamps of unit {data_type.unit!r}", hint="cast the column to microseconds")
        return TIMESTAMP if data_type.tz is not None else TIMESTAMP_NTZ
    if pa.types.is_decimal128(data_type):
        if not 0 <= data_type.scale <= data_type.precision:
            raise StreamError(f"the type {data_type}", hint="cast the column to decimal(p,s) with 0 <= s <= p")
        return SqlType("decimal", data_type.precision, data_type.scale)
    found = _SQL_BY_ARROW.get(data_type)
    if found is None or found in (NULL, INTERVAL):
        raise StreamError(
            f"Dovetail does not take columns of type {data_type}",
            hint="drop the column, or convert it to numbers, strings, dates or timestamps before create_stream",
        )
    return found
