"""Spark's column types as ours; what has no counterpart is refused with the cast to write."""

from __future__ import annotations

from pyspark.sql import types as T

from dovetail.core.errors import StreamError
from dovetail.query.types import COLLATED, SqlType

_NAMES: dict[type[T.DataType], str] = {
    T.BooleanType: "boolean",
    T.ByteType: "tinyint",
    T.ShortType: "smallint",
    T.IntegerType: "int",
    T.LongType: "bigint",
    T.FloatType: "float",
    T.DoubleType: "double",
    T.StringType: "string",
    T.VarcharType: "string",
    T.DateType: "date",
    T.TimestampType: "timestamp",
    T.TimestampNTZType: "timestamp_ntz",
}
_CHAR_KEY = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark notes that a column of text was declared as CHAR or VARCHAR. A VARCHAR compares as any text does."""


def stream_columns(stream: str, schema: T.StructType) -> tuple[tuple[str, SqlType], ...]:
    columns = []
    for field in schema:
        sql_type = COLLATED if is_collated(field) else _sql_type_of(field.dataType)
        if sql_type is None:
            raise StreamError(
                f"stream {stream!r}: column {field.name!r} is {field.dataType.simpleString()}, which no query can use",
                hint=f"drop it or cast it in the DataFrame, e.g. df.drop({field.name!r})",
            )
        columns.append((field.name, sql_type))
    return tuple(columns)


def is_collated(field: T.StructField) -> bool:
    """Whether Spark compares the text of a column otherwise than byte by byte: by a collation, or padded as CHAR."""
    if isinstance(field.dataType, T.CharType):
        return True
    kind = field.dataType
    is_char = str(field.metadata.get(_CHAR_KEY, "")).lower().startswith("char(")
    return isinstance(kind, T.StringType) and (is_char or kind != T.StringType())


def _sql_type_of(data_type: T.DataType) -> SqlType | None:
    if isinstance(data_type, T.DecimalType):
        return SqlType("decimal", data_type.precision, data_type.scale)
    name = _NAMES.get(type(data_type))
    return None if name is None else SqlType(name)
