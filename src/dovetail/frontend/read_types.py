"""Type names in SQL text, and which casts Dovetail does exactly as Spark."""

from __future__ import annotations

from sqlglot import exp

from dovetail.core.errors import SqlError
from dovetail.frontend.parse.source_text import SourceText
from dovetail.frontend.parse.unsupported import refuse
from dovetail.query.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    SqlType,
)

_TYPE_BY_NAME = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": TINYINT,
    "SMALLINT": SMALLINT,
    "INT": INT,
    "BIGINT": BIGINT,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
}
_DEFAULT_DECIMAL = (10, 0)
TYPE_HINT = "use boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), string, date or timestamp"
_FLOAT_TEXT_HINT = "cast to decimal first: CAST(CAST(x AS DECIMAL(20,6)) AS STRING)"


def read_type(node: exp.Expr, place: exp.Expr | int, source: SourceText) -> SqlType:
    """The type after AS in a CAST, or of a column that is declared."""
    name = node.this.name if hasattr(node.this, "name") else str(node.this)
    if name == "DECIMAL":
        texts = [size.name for size in node.args.get("expressions") or []]
        if len(texts) > 2 or not all(text.isdecimal() for text in texts):
            raise SqlError("a decimal takes digits and scale", where=source.where(place), hint="write DECIMAL(10, 2)")
        precision, scale = (*map(int, texts), *_DEFAULT_DECIMAL[len(texts) :])
        try:
            return SqlType("decimal", precision, scale)
        except ValueError as error:
            raise SqlError(str(error), where=source.where(place), hint="use at most decimal(38,s)") from None
    sql_type = _TYPE_BY_NAME.get(name)
    if sql_type is None or node.args.get("expressions"):
        raise refuse(f"the type {name.lower()}", source.where(place), TYPE_HINT)
    return sql_type


def can_cast(source: SqlType, target: SqlType) -> str | None:
    """None if the cast exists and is exact, else the hint."""
    if target == STRING:
        if source.is_floating:
            return _FLOAT_TEXT_HINT
        return "select its parts, for example w.start and w.end" if source.name in ("interval", "window") else None
    is_known = (
        source in (STRING, NULL)
        or (source.is_numeric and (target.is_numeric or target == BOOLEAN))
        or (source == BOOLEAN and target.is_numeric)
        or (source == DATE and target.is_time)
        or (source.is_time and (target == DATE or target.is_time))
        or (source == TIMESTAMP and target == BIGINT)
    )
    return None if is_known else f"cast {source} to {target} in the DataFrame before create_stream"
