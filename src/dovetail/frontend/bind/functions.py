"""The allow-list of scalar functions: name to a builder that types its arguments.

A builder takes bound arguments and gives the expression with all casts written out. Functions that
Spark defines by others (nullif, nvl2, left, to_date ...) are built from those, so that the evaluator
knows few names. What cannot be computed exactly as Spark does it is not in the table.
"""

from __future__ import annotations

from dovetail.frontend.bind.coerce import arithmetic_operands, cast_to, comparable
from dovetail.frontend.bind.function_arguments import (
    Builder,
    FunctionError,
    as_date,
    as_int,
    as_string,
    as_time,
    check_count,
    constant_text,
    merged,
)
from dovetail.frontend.bind.number_functions import NUMBER_FUNCTIONS
from dovetail.frontend.regular_expressions import PatternError, to_re2
from dovetail.frontend.simplify import compare
from dovetail.query.expression import Call, Expression, Literal
from dovetail.query.types import BIGINT, BOOLEAN, DATE, INT, INTERVAL, NULL, STRING, TIMESTAMP, SqlType

__all__ = ["FUNCTIONS", "FunctionError"]

_TRUNCATIONS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mm", "mon"), "month"),
    "week": "week",
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("hour", "minute", "second", "millisecond", "microsecond")},
}


def _coalesce(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 1, None)
    branches = merged(args, timezone)
    return branches[0] if len(branches) == 1 else Call("coalesce", tuple(branches), branches[0].type)


def _nvl(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 2)
    return _coalesce(args, timezone)


def _nvl2(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 3, 3)
    branches = merged(args[1:], timezone)
    return Call("case", (Call("is_not_null", (args[0],), BOOLEAN), *branches), branches[0].type)


def _nullif(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 2)
    sides = comparable(args[0], args[1], timezone)
    if sides is None:
        raise FunctionError(
            f"arguments of {args[0].type} and {args[1].type}",
            f"write CAST(... AS {str(args[0].type).upper()})",
        )
    return Call("case", (compare("eq", *sides), Literal(None, args[0].type), args[0]), args[0].type)


def _extreme(name: str) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 2, None)
        branches = merged(args, timezone)
        return Call(name, tuple(branches), branches[0].type)

    return build


def _null_test(name: str) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 1, 1)
        return Call(name, (args[0],), BOOLEAN)

    return build


def _operator(name: str) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 2, 2)
        operands = arithmetic_operands("mod" if name == "pmod" else name, args[0], args[1], timezone)
        if operands is None or (name == "pmod" and operands[2].name == "decimal"):
            raise FunctionError(f"arguments of {args[0].type} and {args[1].type}", "pass numbers")
        return Call(name, operands[:2], operands[2])

    return build


def _on_string(name: str, result: SqlType) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 1, 1)
        return Call(name, (as_string(args[0], timezone),), result)

    return build


def _on_strings(name: str, result: SqlType, count: int = 2) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, count, count)
        return Call(name, tuple(as_string(arg, timezone) for arg in args), result)

    return build


def _trim(name: str) -> Builder:
    """`trim(text)`; with two arguments Spark takes the characters first for trim, ltrim and rtrim."""

    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 1, 2)
        *characters, text = (as_string(arg, timezone) for arg in args)
        return Call(name, (text, *(characters or [Literal(" ", STRING)])), STRING)

    return build


def _btrim(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 1, 2)
    return _trim("trim")(args[::-1], timezone)


def _substring(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 3)
    length = as_int(args[2], timezone) if len(args) == 3 else Literal(2**31 - 1, INT)
    return Call("substring", (as_string(args[0], timezone), as_int(args[1], timezone), length), STRING)


def _left(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 2)
    return _substring([args[0], Literal(1, INT), args[1]], timezone)


def _right(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 2)
    return Call("right", (as_string(args[0], timezone), as_int(args[1], timezone)), STRING)


def _repeat(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 2)
    return Call("repeat", (as_string(args[0], timezone), as_int(args[1], timezone)), STRING)


def _pad(name: str) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 2, 3)
        filler = as_string(args[2], timezone) if len(args) == 3 else Literal(" ", STRING)
        return Call(name, (as_string(args[0], timezone), as_int(args[1], timezone), filler), STRING)

    return build


def _concat(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 1, None)
    return Call("concat", tuple(as_string(arg, timezone) for arg in args), STRING)


def _replace(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 3)
    texts = [as_string(arg, timezone) for arg in args]
    return Call("replace", (*texts, *([Literal("", STRING)] if len(texts) == 2 else [])), STRING)


def _locate(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 3)
    start = as_int(args[2], timezone) if len(args) == 3 else Literal(1, INT)
    return Call("locate", (as_string(args[0], timezone), as_string(args[1], timezone), start), INT)


def _instr(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 2)
    return _locate(args[::-1], timezone)


def _rlike(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 2)
    pattern = constant_text(args[1], "the pattern")
    try:
        translated = to_re2(pattern)
    except PatternError as error:
        raise FunctionError(str(error), error.hint) from None
    return Call("rlike", (as_string(args[0], timezone), Literal(translated, STRING)), BOOLEAN)


def _date_part(name: str) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 1, 1)
        return Call(name, (as_date(args[0], timezone),), INT)

    return build


def _time_part(name: str) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 1, 1)
        return Call(name, (as_time(args[0], timezone),), INT)

    return build


def _date_trunc(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 2)
    written = constant_text(args[0], "the unit")
    unit = _TRUNCATIONS.get(written.lower())
    if unit is None:
        raise FunctionError(f"{written!r} is no unit", f"use one of {', '.join(sorted(set(_TRUNCATIONS.values())))}")
    moment = cast_to(as_time(args[1], timezone), TIMESTAMP, timezone)
    return Call("date_trunc", (Literal(unit, STRING), moment), TIMESTAMP)


def _to_date(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 1, 1)
    if args[0].type not in (STRING, NULL):
        return as_date(args[0], timezone)
    return cast_to(args[0], DATE, timezone)


def _date_shift(name: str) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 2, 2)
        if args[1].type.name not in ("tinyint", "smallint", "int"):
            raise FunctionError(f"a number of days of {args[1].type}", "write CAST(... AS INT)")
        return Call(name, (as_date(args[0], timezone), as_int(args[1], timezone)), DATE)

    return build


def _date_diff(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 2)
    return Call("datediff", tuple(as_date(arg, timezone) for arg in args), INT)


def _unix(name: str) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 1, 1)
        if args[0].type != TIMESTAMP:
            raise FunctionError(f"an argument of {args[0].type}", "write CAST(... AS TIMESTAMP)")
        return Call(name, (args[0],), BIGINT)

    return build


def _timestamp_from(unit_us: int) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 1, 1)
        if not args[0].type.is_integer:
            raise FunctionError(f"an argument of {args[0].type}", "write CAST(... AS BIGINT)")
        count = cast_to(args[0], BIGINT, timezone)
        return Call("timestamp_from", (count, Literal(unit_us, INTERVAL)), TIMESTAMP)

    return build


FUNCTIONS: dict[str, Builder] = {
    **NUMBER_FUNCTIONS,
    "coalesce": _coalesce,
    "ifnull": _nvl,
    "nvl": _nvl,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "isnull": _null_test("is_null"),
    "isnotnull": _null_test("is_not_null"),
    "mod": _operator("mod"),
    "pmod": _operator("pmod"),
    "upper": _on_string("upper", STRING),
    "ucase": _on_string("upper", STRING),
    "lower": _on_string("lower", STRING),
    "lcase": _on_string("lower", STRING),
    **dict.fromkeys(("length", "len", "char_length", "character_length"), _on_string("length", INT)),
    "reverse": _on_string("reverse", STRING),
    "trim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "btrim": _btrim,
    "substring": _substring,
    "substr": _substring,
    "left": _left,
    "right": _right,
    "repeat": _repeat,
    "lpad": _pad("lpad"),
    "rpad": _pad("rpad"),
    "concat": _concat,
    "replace": _replace,
    "startswith": _on_strings("startswith", BOOLEAN),
    "endswith": _on_strings("endswith", BOOLEAN),
    "contains": _on_strings("contains", BOOLEAN),
    "locate": _locate,
    "position": _locate,
    "instr": _instr,
    **dict.fromkeys(("rlike", "regexp", "regexp_like"), _rlike),
    **{name: _date_part(name) for name in ("year", "quarter", "month", "dayofweek", "dayofyear", "weekofyear")},
    "weekday": _date_part("weekday"),
    "day": _date_part("day"),
    "dayofmonth": _date_part("day"),
    **{name: _time_part(name) for name in ("hour", "minute", "second")},
    "date_trunc": _date_trunc,
    "to_date": _to_date,
    "date": _to_date,
    "date_add": _date_shift("date_add"),
    "date_sub": _date_shift("date_sub"),
    "datediff": _date_diff,
    "date_diff": _date_diff,
    "unix_timestamp": _unix("unix_timestamp"),
    "unix_seconds": _unix("unix_seconds"),
    "unix_millis": _unix("unix_millis"),
    "unix_micros": _unix("unix_micros"),
    "timestamp_seconds": _timestamp_from(1_000_000),
    "timestamp_millis": _timestamp_from(1_000),
    "timestamp_micros": _timestamp_from(1),
}
