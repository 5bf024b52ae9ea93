"""The names that Spark gives to columns without an alias, where they are simple.

Spark names a column by a printed form of its expression. For the common operators and functions
that form is known; for the rest an alias is demanded, so that a name never differs from Spark's.
"""

from __future__ import annotations

from sqlglot import exp

from dovetail.core.errors import UnsupportedSql
from dovetail.frontend.bind.aggregate_functions import AGGREGATES
from dovetail.frontend.bind.window import window_call
from dovetail.frontend.parse.source_text import SourceText
from dovetail.query.expression import Call, Expression, walk

_SYMBOLS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
}
# Functions that Spark prints as they are written, with all arguments and in small letters.
_PLAIN_FUNCTIONS_TEXT = """
    abs coalesce ifnull nvl nvl2 nullif greatest least upper lower length concat startswith endswith contains
    year quarter month day hour minute second dayofweek dayofyear weekofyear weekday mod pmod sign
    left right reverse repeat instr date_add date_sub datediff to_date isnan
"""
_PLAIN_FUNCTIONS = frozenset((*_PLAIN_FUNCTIONS_TEXT.split(), *AGGREGATES))
# Spark prints arithmetic with dates and times as other functions than the operators written.
_TIME_ARITHMETIC = ("time_add", "time_diff", "date_add", "date_sub")


def name_of(node: exp.Expr, bound: Expression, source: SourceText) -> str:
    """The output name of an unaliased item of a SELECT list, which means `bound`."""
    has_time = any(isinstance(part, Call) and part.function in _TIME_ARITHMETIC for part in walk(bound))
    name = None if has_time and not isinstance(node, exp.Anonymous | exp.Column) else _top_name(node)
    if name is None:
        raise UnsupportedSql(
            "an expression without a name", where=source.where(node), hint="give it one: expression AS name"
        )
    return name


def _top_name(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Paren):
        return _top_name(node.this)
    if window_call(node) is not None:
        return "window"
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column):
        return node.this.name
    return node.name if isinstance(node, exp.Column) else _printed(node)


def _printed(node: exp.Expr) -> str | None:
    """Spark's printed form, or None if it is not a simple one."""
    name: str | None = None
    if isinstance(node, exp.Paren):
        name = _printed(node.this)
    elif isinstance(node, exp.Column) and not node.args.get("db"):
        name = node.name
    elif isinstance(node, exp.Literal):
        name = _printed_literal(node)
    elif isinstance(node, exp.Boolean):
        name = "true" if node.this else "false"
    elif type(node) in _SYMBOLS:
        name = _infix(node, _SYMBOLS[type(node)])
    elif isinstance(node, exp.Neg):
        name = _printed_negative(node)
    elif isinstance(node, exp.Not):
        inner = _printed(node.this)
        name = inner and f"(NOT {inner})"
    elif isinstance(node, exp.Anonymous) and str(node.this).lower() in _PLAIN_FUNCTIONS:
        name = _printed_call(node)
    return name


def _printed_call(node: exp.Anonymous) -> str | None:
    function, args, prefix = str(node.this).lower(), node.expressions, ""
    if args and isinstance(args[0], exp.Distinct):
        args, prefix = args[0].expressions, "DISTINCT "
    # Spark reads COUNT(*) as COUNT(1).
    parts = ["1" if isinstance(arg, exp.Star) else _printed(arg) for arg in args]
    return None if None in parts else f"{function}({prefix}{', '.join(filter(None, parts))})"


def _printed_literal(node: exp.Literal) -> str | None:
    text = str(node.this)
    # Doubles are printed by Java's rules, decimals with leading zeros made canonical.
    is_plain = node.is_string or (text.isdigit() and str(int(text)) == text)
    return text if is_plain and text else None


def _printed_negative(node: exp.Neg) -> str | None:
    inner = _printed(node.this)
    if inner is None:
        return None
    return f"-{inner}" if isinstance(node.this, exp.Literal) else f"(- {inner})"


def _infix(node: exp.Expr, symbol: str) -> str | None:
    sides = [_printed(node.this), _printed(node.args["expression"])]
    return None if None in sides else f"({sides[0]} {symbol} {sides[1]})"
