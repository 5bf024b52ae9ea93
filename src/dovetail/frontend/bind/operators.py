"""Readers of constants, columns and arithmetic."""

from __future__ import annotations

from sqlglot import exp

from dovetail.core.errors import TypeMismatch, UnknownName
from dovetail.frontend.bind.coerce import arithmetic_operands, cast_to
from dovetail.frontend.bind.node_binder import NodeBinder, ReaderTable
from dovetail.frontend.parse.literals import LiteralError, number_literal
from dovetail.frontend.parse.unsupported import HINT_BY_FUNCTION, refuse, refuse_node
from dovetail.query.expression import Call, Expression, Literal
from dovetail.query.time_text import offset_range_us
from dovetail.query.types import BOOLEAN, DATE, INT, INTERVAL, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "sub",
    exp.Mul: "mul",
    exp.Div: "div",
    exp.IntDiv: "intdiv",
    exp.Mod: "mod",
}
_DAY_US = 86_400_000_000
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "DIV", "mod": "%"}

OPERATOR_READERS = ReaderTable()


@OPERATOR_READERS.reads(exp.Paren)
def _paren(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this")
    return binder.bind(node.this)


@OPERATOR_READERS.reads(exp.Column)
def _column(binder: NodeBinder, node: exp.Expr) -> Expression:
    assert isinstance(node, exp.Column)
    binder.consume(node, "this", "table", "db", "catalog")
    if isinstance(node.this, exp.Star):
        raise refuse_node(node.this, binder.source)
    bare_hint = HINT_BY_FUNCTION.get(node.name.lower())
    try:
        return binder.scope.resolve(node)
    except UnknownName:
        if bare_hint and not node.table:
            raise refuse(node.name.upper(), binder.source.where(node), bare_hint) from None
        raise


@OPERATOR_READERS.reads(exp.Literal)
def _literal(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "is_string")
    if node.args.get("is_string"):
        return Literal(node.this, STRING)
    return _number(binder, node, node.this)


def _number(binder: NodeBinder, node: exp.Expr, text: str) -> Expression:
    try:
        return number_literal(text)
    except LiteralError as error:
        raise TypeMismatch(str(error), where=binder.source.where(node), hint="use fewer digits or write 1e40") from None


@OPERATOR_READERS.reads(exp.RawString)
def _raw_string(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this")
    return Literal(node.this, STRING)


@OPERATOR_READERS.reads(exp.Boolean)
def _boolean(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this")
    return Literal(bool(node.this), BOOLEAN)


@OPERATOR_READERS.reads(exp.Null)
def _null(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node)
    return Literal(None, NULL)


@OPERATOR_READERS.reads(exp.Interval)
def _interval(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this")
    # sqlglot writes a number below zero as the negation of one.
    size, sign = (node.this.this, -1) if isinstance(node.this, exp.Neg) else (node.this, 1)
    return Literal(sign * int(size.this), INTERVAL)


@OPERATOR_READERS.reads(exp.Neg)
def _neg(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this")
    child = node.this
    if isinstance(child, exp.Literal) and not child.args.get("is_string"):
        number = _number(binder, node, f"-{child.this}")
        assert isinstance(number, Literal)
        if number.value or not number.type.is_floating:
            return number
        # Literals compare by value, and -0.0 equals 0.0: it must stay a call to be told apart.
    value = binder.operand(node)
    if isinstance(value, Literal) and value.type == INTERVAL:
        return Literal(-value.value, INTERVAL)
    if not value.type.is_numeric:
        raise TypeMismatch(
            f"minus a {value.type}", where=binder.source.where(node), hint="write CAST(... AS a number type)"
        )
    return Call("neg", (value,), value.type)


@OPERATOR_READERS.reads(*_ARITHMETIC)
def _arithmetic(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression", "typed", "safe")
    operator = _ARITHMETIC[type(node)]
    a, b = binder.operand(node), binder.operand(node, "expression")
    with_time = _time_arithmetic(operator, a, b, binder.timezone)
    if with_time is not None:
        return with_time
    operands = arithmetic_operands(operator, a, b, binder.timezone)
    if operands is None:
        raise binder.mismatch(node, f"{_SYMBOLS[operator]}", a.type, b.type)
    return Call(operator, operands[:2], operands[2])


def _time_arithmetic(operator: str, a: Expression, b: Expression, timezone: str) -> Expression | None:
    """Times, dates and intervals: `ts + INTERVAL`, `ts - ts`, `date + 3`; None for anything else."""
    if operator not in ("add", "sub"):
        return None
    if operator == "add" and (a.type == INTERVAL or b.type == DATE):
        a, b = b, a
    if isinstance(b, Literal) and b.type == INTERVAL:
        return _shifted(a, -b.value if operator == "sub" else b.value)
    if operator == "sub" and a.type.is_time and a.type == b.type:
        return _difference(a, b, timezone)
    if a.type == DATE and b.type.name in ("tinyint", "smallint", "int"):
        return Call("date_add" if operator == "add" else "date_sub", (a, cast_to(b, INT, "UTC")), DATE)
    return None


def _difference(a: Expression, b: Expression, timezone: str) -> Expression:
    """Spark subtracts what the clocks of the session's zone show, and these do not always run on evenly."""
    if a.type == TIMESTAMP and offset_range_us(timezone):
        a, b = cast_to(a, TIMESTAMP_NTZ, timezone), cast_to(b, TIMESTAMP_NTZ, timezone)
    return Call("time_diff", (a, b), INTERVAL)


def _shifted(start: Expression, shift_us: int) -> Expression | None:
    shift = Literal(shift_us, INTERVAL)
    if isinstance(start, Literal) and start.type == INTERVAL:
        return Literal(start.value + shift_us, INTERVAL)
    if start.type.is_time or start.type == INTERVAL:
        return Call("time_add", (start, shift), start.type)
    if start.type != DATE:
        return None
    days, rest_us = divmod(shift_us, _DAY_US)
    if rest_us == 0:
        return Call("date_add", (start, Literal(days, INT)), DATE)
    return Call("time_add", (Call("cast", (start,), TIMESTAMP), shift), TIMESTAMP)
