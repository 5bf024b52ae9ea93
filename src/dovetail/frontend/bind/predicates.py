"""Readers of comparisons and other conditions."""

from __future__ import annotations

from sqlglot import exp

from dovetail.core.errors import TypeMismatch, UnsupportedSql
from dovetail.frontend.bind.coerce import cast_to, comparable
from dovetail.frontend.bind.node_binder import COMPARISONS, NodeBinder, ReaderTable
from dovetail.frontend.merge_branches import merge_branches
from dovetail.frontend.parse.unsupported import refuse
from dovetail.frontend.simplify import compare, negate
from dovetail.query.expression import Call, Expression, Literal
from dovetail.query.types import BOOLEAN, NULL, STRING, WINDOW

PREDICATE_READERS = ReaderTable()


@PREDICATE_READERS.reads(*COMPARISONS)
def _comparison(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression")
    operator = COMPARISONS[type(node)]
    result = compare_expressions(binder, node, operator, binder.operand(node), binder.operand(node, "expression"))
    return negate(result) if isinstance(node, exp.NullSafeNEQ) else result


def compare_expressions(binder: NodeBinder, node: exp.Expr, operator: str, a: Expression, b: Expression) -> Expression:
    if WINDOW in (a.type, b.type):
        return _compare_windows(binder, node, operator, a, b)
    if a.type == NULL and b.type == NULL:
        # Two NULLs without a type: any type will do.
        a, b = cast_to(a, BOOLEAN, binder.timezone), cast_to(b, BOOLEAN, binder.timezone)
    sides = comparable(a, b, binder.timezone)
    if sides is None:
        raise binder.mismatch(node, "a comparison", a.type, b.type)
    for side, original in zip(sides, (a, b), strict=True):
        if side.type != original.type and original.type == STRING and not isinstance(side, Literal):
            assert isinstance(original, Literal)
            what = f"{original.value!r} is no {side.type}"
            raise TypeMismatch(what, where=binder.source.where(node), hint=f"write a {side.type} such as '2024-12-31'")
    return compare(operator, *sides)


def _compare_windows(binder: NodeBinder, node: exp.Expr, operator: str, a: Expression, b: Expression) -> Expression:
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


@PREDICATE_READERS.reads(exp.And, exp.Or)
def _connective(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression")
    name = "and" if isinstance(node, exp.And) else "or"
    sides = tuple(binder.bind_condition(node.args[key]) for key in ("this", "expression"))
    return Call(name, sides, BOOLEAN)


@PREDICATE_READERS.reads(exp.Not)
def _not(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this")
    return negate(binder.bind_condition(node.this))


@PREDICATE_READERS.reads(exp.Between)
def _between(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "low", "high")
    value = binder.operand(node)
    lower = compare_expressions(binder, node, "ge", value, binder.operand(node, "low"))
    upper = compare_expressions(binder, node, "le", value, binder.operand(node, "high"))
    return Call("and", (lower, upper), BOOLEAN)


@PREDICATE_READERS.reads(exp.In)
def _in(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expressions")
    value = binder.operand(node)
    if not node.args.get("expressions"):
        raise refuse("IN without a list", binder.source.where(node), "write IN (value, ...)")
    items = [binder.bind(item) for item in node.args["expressions"]]
    if value.type == WINDOW or any(item.type == WINDOW for item in items):
        raise TypeMismatch("a window in IN", where=binder.source.where(node), hint="compare w.start and w.end")
    merged = merge_branches([value, *items], binder.timezone)
    if merged is None:
        other = next(item.type for item in items if merge_branches([value, item], binder.timezone) is None)
        raise binder.mismatch(node, "IN", value.type, other)
    if merged[0].type == NULL:
        merged = [cast_to(each, BOOLEAN, binder.timezone) for each in merged]
    value, *items = merged
    if all(isinstance(item, Literal) for item in items):
        return Call("in", (value, *items), BOOLEAN)
    found: Expression = compare("eq", value, items[0])
    for item in items[1:]:
        found = Call("or", (found, compare("eq", value, item)), BOOLEAN)
    # Spark does not look at the items where the value is NULL, so an item that fails there must not.
    return Call("case", (Call("is_not_null", (value,), BOOLEAN), found, Literal(None, BOOLEAN)), BOOLEAN)


@PREDICATE_READERS.reads(exp.Is)
def _is(binder: NodeBinder, node: exp.Expr) -> Expression:
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


@PREDICATE_READERS.reads(exp.Like, exp.ILike, exp.Escape)
def _like(binder: NodeBinder, node: exp.Expr) -> Expression:
    binder.consume(node, "this", "expression", "negate")
    escape = "\\"
    match = node
    if isinstance(node, exp.Escape):
        match, escape = node.this, node.expression.name
        binder.consume(match, "this", "expression", "negate")
    if not isinstance(match, exp.Like):
        raise refuse("ILIKE", binder.source.where(match), "use lower(x) LIKE 'pattern in lower case'")
    value, pattern = bind_strings(binder, match)
    if not isinstance(pattern, Literal):
        raise refuse("LIKE with a pattern that is no constant", binder.source.where(match), "write the pattern")
    _check_like_pattern(binder, match, pattern.value, escape)
    result: Expression = Call("like", (value, pattern, Literal(escape, STRING)), BOOLEAN)
    is_negated = bool(match.args.get("negate")) != bool(match is not node and node.args.get("negate"))
    return negate(result) if is_negated else result


def _check_like_pattern(binder: NodeBinder, node: exp.Expr, pattern: str | None, escape: str) -> None:
    where = binder.source.where(node)
    if len(escape) != 1:
        raise UnsupportedSql("ESCAPE takes one character", where=where, hint="write ESCAPE '/'")
    rest = iter(pattern or "")
    for character in rest:
        if character == escape and next(rest, None) not in ("%", "_", escape):
            hint = f"an escape is {escape}% or {escape}_ or {escape}{escape}"
            raise UnsupportedSql(f"LIKE pattern {pattern!r} has a bad escape", where=where, hint=hint)


def bind_strings(binder: NodeBinder, node: exp.Expr) -> tuple[Expression, Expression]:
    sides = [binder.operand(node), binder.operand(node, "expression")]
    for side in sides:
        if side.type not in (STRING, NULL):
            raise binder.mismatch(node, "a pattern match", side.type, STRING)
    value, pattern = (cast_to(side, STRING, binder.timezone) for side in sides)
    return value, pattern
