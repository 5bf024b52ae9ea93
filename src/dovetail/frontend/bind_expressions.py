"""Syntax nodes to typed expressions, with every implicit cast of Spark written out.

The binder is an allow-list: a node kind without a reader here is refused, and so is every argument
of a node that its reader does not consume.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp

from dovetail.core.errors import TypeMismatch, UnknownName, UnsupportedSql
from dovetail.frontend.bind_names import Scope, close_matches
from dovetail.frontend.coerce import arithmetic_operands, cast_to, comparable
from dovetail.frontend.functions import FUNCTIONS, FunctionError
from dovetail.frontend.merge_branches import merge_branches
from dovetail.frontend.parse_literals import LiteralError, number_literal
from dovetail.frontend.read_types import can_cast, read_type
from dovetail.frontend.simplify import compare, negate
from dovetail.frontend.unsupported import HINT_BY_FUNCTION, refuse, refuse_leftovers, refuse_node
from dovetail.query.expression import Call, Expression, Literal
from dovetail.query.types import BOOLEAN, DATE, INT, INTERVAL, NULL, STRING, TIMESTAMP, WINDOW, SqlType

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "eq_null_safe",
    exp.NullSafeNEQ: "eq_null_safe",
}
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
_PREDICATES = (*_COMPARISONS, exp.Between, exp.In, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Is)
_UNPARENTHESIZED = (*_PREDICATES, exp.Not, exp.And, exp.Or)

Reader = Callable[["ExpressionBinder", exp.Expr], Expression]


class ExpressionBinder:
    """Binds expressions of one SELECT: its scope, its text, its session's time zone."""

    readers: ClassVar[dict[type[exp.Expr], Reader]] = {}

    def __init__(self, scope: Scope, timezone: str) -> None:
        self.scope = scope
        self.source = scope.source
        self.timezone = timezone

    def bind(self, node: exp.Expr) -> Expression:
        reader = self.readers.get(type(node))
        if reader is None:
            raise refuse_node(node, self.source)
        return reader(self, node)

    def bind_condition(self, node: exp.Expr) -> Expression:
        return self.as_boolean(self.bind(node), node)

    def as_boolean(self, expression: Expression, node: exp.Expr) -> Expression:
        if expression.type not in (BOOLEAN, NULL):
            raise TypeMismatch(
                f"a condition of type {expression.type}",
                where=self.source.where(node),
                hint="compare it with something, or write CAST(... AS BOOLEAN)",
            )
        return cast_to(expression, BOOLEAN, self.timezone)

    def consume(self, node: exp.Expr, *keys: str) -> None:
        refuse_leftovers(node, keys, self.source)

    def operand(self, node: exp.Expr, key: str = "this") -> Expression:
        """An operand of an operator. Spark and sqlglot nest bare predicates differently, so they need parentheses."""
        child = node.args.get(key)
        if not isinstance(child, exp.Expr):
            raise refuse_node(node, self.source)
        if isinstance(child, _UNPARENTHESIZED):
            what = "a condition as operand without parentheses"
            raise refuse(what, self.source.where(child), "put the inner condition into parentheses")
        return self.bind(child)

    def mismatch(self, node: exp.Expr, what: str, a: SqlType, b: SqlType) -> TypeMismatch:
        target = next((t for t in (a, b) if t not in (STRING, NULL)), a)
        hint = f"write CAST(... AS {str(target).upper()}) around the other side"
        return TypeMismatch(f"{what} of {a} and {b}", where=self.source.where(node), hint=hint)


def reads(*kinds: type[exp.Expr]) -> Callable[[Reader], Reader]:
    def register(reader: Reader) -> Reader:
        for kind in kinds:
            ExpressionBinder.readers[kind] = reader
        return reader

    return register


@reads(exp.Paren)
def _paren(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this")
    return binder.bind(node.this)


@reads(exp.Column)
def _column(binder: ExpressionBinder, node: exp.Expr) -> Expression:
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


@reads(exp.Literal)
def _literal(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "is_string")
    if node.args.get("is_string"):
        return Literal(node.this, STRING)
    return _number(binder, node, node.this)


def _number(binder: ExpressionBinder, node: exp.Expr, text: str) -> Expression:
    try:
        return number_literal(text)
    except LiteralError as error:
        raise TypeMismatch(str(error), where=binder.source.where(node), hint="use fewer digits or write 1e40") from None


@reads(exp.RawString)
def _raw_string(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this")
    return Literal(node.this, STRING)


@reads(exp.Boolean)
def _boolean(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this")
    return Literal(bool(node.this), BOOLEAN)


@reads(exp.Null)
def _null(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node)
    return Literal(None, NULL)


@reads(exp.Interval)
def _interval(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this")
    return Literal(int(node.this.this), INTERVAL)


@reads(exp.Neg)
def _neg(binder: ExpressionBinder, node: exp.Expr) -> Expression:
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


@reads(*_ARITHMETIC)
def _arithmetic(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression", "typed", "safe")
    operator = _ARITHMETIC[type(node)]
    a, b = binder.operand(node), binder.operand(node, "expression")
    with_time = _time_arithmetic(operator, a, b)
    if with_time is not None:
        return with_time
    operands = arithmetic_operands(operator, a, b, binder.timezone)
    if operands is None:
        raise binder.mismatch(node, f"{_SYMBOLS[operator]}", a.type, b.type)
    return Call(operator, operands[:2], operands[2])


def _time_arithmetic(operator: str, a: Expression, b: Expression) -> Expression | None:
    """Times, dates and intervals: `ts + INTERVAL`, `ts - ts`, `date + 3`; None for anything else."""
    if operator not in ("add", "sub"):
        return None
    if operator == "add" and (a.type == INTERVAL or b.type == DATE):
        a, b = b, a
    if isinstance(b, Literal) and b.type == INTERVAL:
        return _shifted(a, -b.value if operator == "sub" else b.value)
    if operator == "sub" and a.type.is_time and a.type == b.type:
        return Call("time_diff", (a, b), INTERVAL)
    if a.type == DATE and b.type.name in ("tinyint", "smallint", "int"):
        return Call("date_add" if operator == "add" else "date_sub", (a, cast_to(b, INT, "UTC")), DATE)
    return None


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


@reads(*_COMPARISONS)
def _comparison(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression")
    operator = _COMPARISONS[type(node)]
    result = compare_expressions(binder, node, operator, binder.operand(node), binder.operand(node, "expression"))
    return negate(result) if isinstance(node, exp.NullSafeNEQ) else result


def compare_expressions(
    binder: ExpressionBinder, node: exp.Expr, operator: str, a: Expression, b: Expression
) -> Expression:
    if WINDOW in (a.type, b.type):
        return _compare_windows(binder, node, operator, a, b)
    sides = comparable(a, b, binder.timezone)
    if sides is None:
        raise binder.mismatch(node, "a comparison", a.type, b.type)
    for side, original in zip(sides, (a, b), strict=True):
        if side.type != original.type and original.type == STRING and not isinstance(side, Literal):
            assert isinstance(original, Literal)
            what = f"{original.value!r} is no {side.type}"
            raise TypeMismatch(what, where=binder.source.where(node), hint=f"write a {side.type} such as '2024-12-31'")
    return compare(operator, *sides)


def _compare_windows(
    binder: ExpressionBinder, node: exp.Expr, operator: str, a: Expression, b: Expression
) -> Expression:
    is_pair = isinstance(a, Call) and isinstance(b, Call) and a.type == WINDOW and b.type == WINDOW
    if not is_pair or operator != "eq":
        hint = "join windows with =, or compare w.start and w.end"
        raise TypeMismatch("a window in a comparison", where=binder.source.where(node), hint=hint)
    assert isinstance(a, Call)
    assert isinstance(b, Call)
    parts = [
        compare_expressions(binder, node, "eq", a_part, b_part) for a_part, b_part in zip(a.args, b.args, strict=True)
    ]
    return Call("and", tuple(parts), BOOLEAN)


@reads(exp.And, exp.Or)
def _connective(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression")
    name = "and" if isinstance(node, exp.And) else "or"
    sides = tuple(binder.bind_condition(node.args[key]) for key in ("this", "expression"))
    return Call(name, sides, BOOLEAN)


@reads(exp.Not)
def _not(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this")
    return negate(binder.bind_condition(node.this))


@reads(exp.Between)
def _between(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "low", "high")
    value = binder.operand(node)
    lower = compare_expressions(binder, node, "ge", value, binder.operand(node, "low"))
    upper = compare_expressions(binder, node, "le", value, binder.operand(node, "high"))
    return Call("and", (lower, upper), BOOLEAN)


@reads(exp.In)
def _in(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expressions")
    value = binder.operand(node)
    items = [binder.bind(item) for item in node.args["expressions"]]
    if value.type == WINDOW or any(item.type == WINDOW for item in items):
        raise TypeMismatch("a window in IN", where=binder.source.where(node), hint="compare w.start and w.end")
    merged = merge_branches([value, *items], binder.timezone)
    if merged is None:
        other = next(item.type for item in items if merge_branches([value, item], binder.timezone) is None)
        raise binder.mismatch(node, "IN", value.type, other)
    value, *items = merged
    if all(isinstance(item, Literal) for item in items):
        return Call("in", (value, *items), BOOLEAN)
    found: Expression = compare("eq", value, items[0])
    for item in items[1:]:
        found = Call("or", (found, compare("eq", value, item)), BOOLEAN)
    # Spark does not look at the items where the value is NULL, so an item that fails there must not.
    return Call("case", (Call("is_not_null", (value,), BOOLEAN), found, Literal(None, BOOLEAN)), BOOLEAN)


@reads(exp.Is)
def _is(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression", "negate")
    value, tested = binder.operand(node), node.expression
    if isinstance(tested, exp.Null):
        result: Expression = Call("is_null", (value,), BOOLEAN)
    elif isinstance(tested, exp.Boolean):
        condition = binder.as_boolean(value, node)
        result = Call("eq_null_safe", (condition, Literal(bool(tested.this), BOOLEAN)), BOOLEAN)
    else:
        raise refuse("IS with anything but NULL, TRUE, FALSE", binder.source.where(node), "use = or <=>")
    return negate(result) if node.args.get("negate") else result


@reads(exp.Like, exp.ILike, exp.Escape)
def _like(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression", "negate")
    escape = "\\"
    match = node
    if isinstance(node, exp.Escape):
        match, escape = node.this, node.expression.name
        binder.consume(match, "this", "expression", "negate")
    if not isinstance(match, exp.Like):
        raise refuse("ILIKE", binder.source.where(match), "use lower(x) LIKE 'pattern in lower case'")
    value, pattern = _strings(binder, match)
    if not isinstance(pattern, Literal):
        raise refuse("LIKE with a pattern that is no constant", binder.source.where(match), "write the pattern")
    _check_like_pattern(binder, match, pattern.value, escape)
    result: Expression = Call("like", (value, pattern, Literal(escape, STRING)), BOOLEAN)
    is_negated = bool(match.args.get("negate")) != bool(match is not node and node.args.get("negate"))
    return negate(result) if is_negated else result


def _check_like_pattern(binder: ExpressionBinder, node: exp.Expr, pattern: str | None, escape: str) -> None:
    where = binder.source.where(node)
    if len(escape) != 1:
        raise UnsupportedSql("ESCAPE takes one character", where=where, hint="write ESCAPE '/'")
    rest = iter(pattern or "")
    for character in rest:
        if character == escape and next(rest, None) not in ("%", "_", escape):
            hint = f"an escape is {escape}% or {escape}_ or {escape}{escape}"
            raise UnsupportedSql(f"LIKE pattern {pattern!r} has a bad escape", where=where, hint=hint)


def _strings(binder: ExpressionBinder, node: exp.Expr) -> tuple[Expression, Expression]:
    sides = [binder.operand(node), binder.operand(node, "expression")]
    for side in sides:
        if side.type not in (STRING, NULL):
            raise binder.mismatch(node, "a pattern match", side.type, STRING)
    value, pattern = (cast_to(side, STRING, binder.timezone) for side in sides)
    return value, pattern


@reads(exp.RegexpLike)
def _rlike(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression")
    return call_function(binder, node, "rlike", list(_strings(binder, node)))


@reads(exp.DPipe)
def _concat(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression", "safe")
    return call_function(binder, node, "concat", [binder.operand(node), binder.operand(node, "expression")])


@reads(exp.If)
def _if(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "true", "false")
    branches = [binder.bind(node.args["true"])]
    if node.args.get("false") is None:
        raise refuse("IF without an else value", binder.source.where(node), "write IF(condition, value, NULL)")
    return case_of(binder, node, [binder.bind_condition(node.this)], [*branches, binder.bind(node.args["false"])])


@reads(exp.Case)
def _case(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "ifs", "default")
    conditions, values = [], []
    for branch in node.args["ifs"]:
        binder.consume(branch, "this", "true")
        if node.args.get("this") is None:
            conditions.append(binder.bind_condition(branch.this))
        else:
            tested = compare_expressions(binder, branch, "eq", binder.operand(node), binder.operand(branch))
            conditions.append(tested)
        values.append(binder.bind(branch.args["true"]))
    default = node.args.get("default")
    values.append(binder.bind(default) if default is not None else Literal(None, NULL))
    return case_of(binder, node, conditions, values)


def case_of(
    binder: ExpressionBinder, node: exp.Expr, conditions: list[Expression], values: list[Expression]
) -> Expression:
    merged = merge_branches(values, binder.timezone)
    if merged is None:
        kinds = sorted({str(value.type) for value in values})
        raise TypeMismatch(
            f"branches of {' and '.join(kinds)}",
            where=binder.source.where(node),
            hint=f"write CAST(... AS {kinds[0].upper()}) so that all branches have one type",
        )
    args = [part for pair in zip(conditions, merged, strict=False) for part in pair]
    return Call("case", (*args, merged[-1]), merged[-1].type)


@reads(exp.Cast)
def _cast(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "to", "_type")
    target = read_type(node.args["to"], node, binder.source)
    value = binder.bind(node.this)
    if value.type == target:
        return value
    problem = can_cast(value.type, target)
    if problem is not None:
        raise TypeMismatch(f"CAST of {value.type} to {target}", where=binder.source.where(node), hint=problem)
    folded = cast_to(value, target, binder.timezone)
    if isinstance(value, Literal) and value.type == STRING and not isinstance(folded, Literal) and target in _CONSTANTS:
        raise TypeMismatch(
            f"{value.value!r} is no {target}",
            where=binder.source.where(node),
            hint="write it as in '2024-12-31 23:59:59'",
        )
    return folded


_CONSTANTS = (DATE, TIMESTAMP, SqlType("timestamp_ntz"))


@reads(exp.Anonymous)
def _function(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expressions")
    if not isinstance(node.this, str):
        raise refuse("a quoted function name", binder.source.where(node), "write the name without quotes")
    name = node.this.lower()
    if name == "window":
        hint = "use it in a derived table, (SELECT *, window(ts, '4 seconds') AS w FROM stream), and join on w"
        raise refuse("window() here", binder.source.where(node), hint)
    if name not in FUNCTIONS:
        if name in HINT_BY_FUNCTION:
            raise refuse(f"{name}()", binder.source.where(node), HINT_BY_FUNCTION[name])
        what = f"unknown function {name!r}"
        raise UnknownName(what, where=binder.source.where(node), hint=close_matches(name, FUNCTIONS))
    return call_function(binder, node, name, [binder.bind(arg) for arg in node.args["expressions"]])


@reads(exp.Extract)
def _extract(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression")
    field = node.this.name.lower().rstrip("s")
    if field not in ("year", "month", "day", "hour", "minute", "quarter", "week"):
        hint = "use year, quarter, month, week, day, hour or minute, or second(x) for whole seconds"
        raise refuse(f"EXTRACT of {node.this.name}", binder.source.where(node), hint)
    name = "weekofyear" if field == "week" else field
    return call_function(binder, node, name, [binder.operand(node, "expression")])


@reads(exp.StrPosition)
def _position(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "substr")
    return call_function(binder, node, "locate", [binder.operand(node, "substr"), binder.operand(node)])


@reads(exp.Substring)
def _substring(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "start", "length")
    keys = [key for key in ("this", "start", "length") if node.args.get(key) is not None]
    return call_function(binder, node, "substring", [binder.operand(node, key) for key in keys])


@reads(exp.Trim)
def _trim(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "position", "expression")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    args = [binder.operand(node)]
    if node.args.get("expression") is not None:
        return call_function(binder, node, name, [binder.operand(node, "expression"), *args])
    return call_function(binder, node, name, args)


def call_function(binder: ExpressionBinder, node: exp.Expr, name: str, args: list[Expression]) -> Expression:
    try:
        return FUNCTIONS[name](args, binder.timezone)
    except FunctionError as error:
        raise TypeMismatch(f"{name}(): {error}", where=binder.source.where(node), hint=error.hint) from None
