"""Functions of numbers, typed as Spark types them."""

from __future__ import annotations

from dovetail.frontend.bind.coerce import cast_to
from dovetail.frontend.bind.function_arguments import Builder, FunctionError, check_count, constant_int
from dovetail.query.expression import Call, Expression, Literal
from dovetail.query.types import BIGINT, BOOLEAN, DOUBLE, INT, MAX_DECIMAL_PRECISION, NULL, SqlType

# Java computes these powers by multiplication and square root; for others its last digit differs from C's.
EXACT_EXPONENTS = (0.0, 0.5, 1.0, 2.0)


def _number(arg: Expression) -> Expression:
    if not arg.type.is_numeric and arg.type != NULL:
        raise FunctionError(f"an argument of {arg.type}", "write CAST(... AS DOUBLE) or another number type")
    return Literal(None, DOUBLE) if arg.type == NULL else arg


def _abs(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 1, 1)
    number = _number(args[0])
    return Call("abs", (number,), number.type)


def _on_double(name: str, result: SqlType = DOUBLE) -> Builder:
    def build(args: list[Expression], timezone: str) -> Expression:
        check_count(args, 1, 1)
        return Call(name, (cast_to(_number(args[0]), DOUBLE, timezone),), result)

    return build


def _whole(name: str) -> Builder:
    """`floor` and `ceil`: bigint, or a decimal without scale."""

    def build(args: list[Expression], timezone: str) -> Expression:
        if len(args) == 2:
            raise FunctionError("a target scale", "use one argument; round(x, n) takes a scale")
        check_count(args, 1, 1)
        number = _number(args[0])
        if number.type.is_integer:
            return cast_to(number, BIGINT, timezone)
        if number.type.name == "decimal":
            if number.type.scale == 0:
                return number
            return Call(name, (number,), SqlType("decimal", number.type.precision - number.type.scale + 1, 0))
        return Call(name, (cast_to(number, DOUBLE, timezone),), BIGINT)

    return build


def _round(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 1, 2)
    number = _number(args[0])
    digits = constant_int(args[1], "the number of digits") if len(args) == 2 else 0
    if number.type.is_integer and digits >= 0:
        return number
    result = _rounded_decimal(number.type, digits) if number.type.name == "decimal" else number.type
    return Call("round", (number, Literal(digits, INT)), result)


def _rounded_decimal(source: SqlType, digits: int) -> SqlType:
    integral = source.precision - source.scale + 1
    if digits < 0:
        return SqlType("decimal", min(max(integral, 1 - digits), MAX_DECIMAL_PRECISION), 0)
    scale = min(source.scale, digits)
    return SqlType("decimal", min(integral + scale, MAX_DECIMAL_PRECISION), scale)


def _power(args: list[Expression], timezone: str) -> Expression:
    check_count(args, 2, 2)
    base, exponent = (cast_to(_number(arg), DOUBLE, timezone) for arg in args)
    if not isinstance(exponent, Literal) or exponent.value not in EXACT_EXPONENTS:
        hint = "use the constant exponents 0, 0.5, 1 or 2, or write products such as x * x * x"
        raise FunctionError("a power that Spark and Dovetail would not compute to the same last digit", hint)
    return Call("power", (base, exponent), DOUBLE)


NUMBER_FUNCTIONS: dict[str, Builder] = {
    "abs": _abs,
    "sign": _on_double("sign"),
    "signum": _on_double("sign"),
    "sqrt": _on_double("sqrt"),
    "isnan": _on_double("is_nan", BOOLEAN),
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "ceiling": _whole("ceil"),
    "round": _round,
    "power": _power,
    "pow": _power,
}
