"""Spark's column types as ours and back; what has no counterpart is refused with the cast to write."""

from __future__ import annotations

from pyspark.sql import types as T

from dovetail.core.errors import StreamError
from dovetail.query.types import COLLATED, SqlType

_TYPES: dict[str, T.DataType] = {
    "boolean": T.BooleanType(),
    "tinyint": T.ByteType(),
    "smallint": T.ShortType(),
    "int": T.IntegerType(),
    "bigint": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
    "timestamp_ntz": T.TimestampNTZType(),
}
_ANSWERED_TYPES: dict[str, T.DataType] = {
    **_TYPES,
    "null": T.NullType(),
    "window": T.StructType([T.StructField("start", T.TimestampType()), T.StructField("end", T.TimestampType())]),
}
"""Of answers, too: no column of a stream has these."""
_NAMES = {**{type(data_type): name for name, data_type in _TYPES.items()}, T.VarcharType: "string"}
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


def spark_type(sql_type: SqlType) -> T.DataType:
    """Of a column of a stream or of answers."""
    if sql_type.name == "decimal":
        return T.DecimalType(sql_type.precision, sql_type.scale)
    return _ANSWERED_TYPES[sql_type.name]


def quoted(name: str) -> str:
    """The name of a column as Spark's expressions take it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
