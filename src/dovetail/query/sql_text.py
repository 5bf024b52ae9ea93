"""Expressions as a user would write them: SQL text for people, while `str()` is the canonical text for the engine.

and(gt(row.amount, 50.0:double), in(row.method, 'card':string, 'wire':string))
amount > 50 AND method IN ('card', 'wire')
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime

from dovetail.query.durations import duration_text
from dovetail.query.expression import Call, Column, Expression, Literal

ColumnText = Callable[[Column], str]
"""How a column is called."""

_SYMBOLS = {
    "or": "OR",
    "and": "AND",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq_null_safe": "<=>",
    "add": "+",
    "sub": "-",
    "time_add": "+",
    "elapse": "+",
    "time_diff": "-",
    "mul": "*",
    "div": "/",
    "intdiv": "DIV",
    "mod": "%",
}
_RANKS = (
    ("or",),
    ("and",),
    ("not",),
    ("eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe", "in", "like", "rlike", "is_null", "is_not_null"),
    ("add", "sub", "time_add", "elapse", "time_diff"),
    ("mul", "div", "intdiv", "mod"),
    ("neg",),
)
_FORMS = {
    "not": "NOT {0}",
    "neg": "-{0}",
    "in": "{0} IN ({rest})",
    "like": "{0} LIKE {1}",
    "rlike": "{0} RLIKE {1}",
    "is_null": "{0} IS NULL",
    "is_not_null": "{0} IS NOT NULL",
    "cast": "CAST({0} AS {type})",
}
_RANK_BY_FUNCTION = {name: rank for rank, names in enumerate(_RANKS) for name in names}
_HIGHEST = len(_RANKS)
_COMPARISON = _RANK_BY_FUNCTION["eq"]


def column_name(column: Column) -> str:
    """Without its relation: where there is only one."""
    return column.name


def sql_text(expression: Expression, column_text: ColumnText = str) -> str:
    """For people: it need not parse again, and casts that the front end added are among it.

    >>> from dovetail.query.types import BIGINT, BOOLEAN
    >>> x, one = Column("a", "x", BIGINT), Literal(1, BIGINT)
    >>> sql_text(Call("gt", (Call("mul", (Call("add", (x, one), BIGINT), x), BIGINT), one), BOOLEAN))
    '(a.x + 1) * a.x > 1'
    """
    return _Writer(column_text).text(expression, 0)


class _Writer:
    def __init__(self, column_text: ColumnText) -> None:
        self._column_text = column_text

    def text(self, expression: Expression, rank: int) -> str:
        """In brackets if it binds less than `rank` asks."""
        if isinstance(expression, Column):
            return self._column_text(expression)
        if isinstance(expression, Literal):
            return _literal(expression)
        own = _RANK_BY_FUNCTION.get(expression.function, _HIGHEST)
        written = self._call(expression, own)
        return f"({written})" if own < rank else written

    def _call(self, call: Call, rank: int) -> str:
        args = call.args
        if call.function == "and" and _is_between(call):
            low, high = (arg.args[1] for arg in args if isinstance(arg, Call))
            bounds = " AND ".join(self.text(bound, _COMPARISON + 1) for bound in (low, high))
            return f"{self._between_value(args[0])} BETWEEN {bounds}"
        if call.function == "time_add" and isinstance(args[1], Literal) and args[1].value < 0:
            return f"{self.text(args[0], rank)} - {_interval(-args[1].value)}"
        if call.function in _SYMBOLS:
            symbol = _SYMBOLS[call.function]
            # Of equal rank only the left operand needs no brackets: a - (b - c).
            is_chain = call.function in ("and", "or")
            ranks = (rank if is_chain or place == 0 else rank + 1 for place in range(len(args)))
            return f" {symbol} ".join(self.text(arg, own) for arg, own in zip(args, ranks, strict=True))
        return self._special(call, rank)

    def _special(self, call: Call, rank: int) -> str:
        texts = [self.text(arg, rank + 1 if rank < _HIGHEST else 0) for arg in call.args]
        if call.function == "case":
            return _case(texts)
        form = _FORMS.get(call.function, "{name}({all})")
        first, rest = texts[0] if texts else "", texts[1:]
        return form.format(
            first,
            *rest[:1],
            rest=", ".join(rest),
            all=", ".join(texts),
            name=call.function,
            type=str(call.type).upper(),
        )

    def _between_value(self, lower: Expression) -> str:
        return self.text(lower.args[0], _COMPARISON + 1) if isinstance(lower, Call) else ""


def _is_between(call: Call) -> bool:
    lower, *upper = call.args
    return (
        len(upper) == 1
        and isinstance(lower, Call)
        and isinstance(upper[0], Call)
        and (lower.function, upper[0].function) == ("ge", "le")
        and lower.args[0] == upper[0].args[0]
    )


def _case(texts: list[str]) -> str:
    pairs = zip(texts[:-1:2], texts[1:-1:2], strict=True)
    branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    return f"CASE {branches} ELSE {texts[-1]} END"


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        text = "NULL"
    elif isinstance(value, bool):
        text = str(value).upper()
    elif literal.type.name == "interval":
        text = _interval(value)
    elif literal.type.is_time and not -62_135_596_800_000_000 <= value < 253_402_300_800_000_000:
        text = f"timestamp_micros({value})"
    elif literal.type.is_time:
        text = f"TIMESTAMP '{datetime.fromtimestamp(value / 1e6, UTC):%Y-%m-%d %H:%M:%S.%f}'".replace(".000000", "")
    elif isinstance(value, date):
        text = f"DATE '{value}'"
    elif isinstance(value, str):
        text = "'" + value.replace("'", "''") + "'"
    else:
        text = str(value).removesuffix(".0")
    return text


def _interval(value_us: int) -> str:
    return f"INTERVAL {duration_text(value_us).upper()}"
