"""Small rewrites that keep meaning exactly, so that equal conditions get equal expressions.

Constants stand on the right, NOT sits at the leaves, and comparisons of an integer column with a
constant of a wider type compare in the column's own type. Shared selections and the fast paths of
the evaluator rely on these forms.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal
from math import floor

from dovetail.frontend.parse.literals import fits_integer
from dovetail.query.expression import Call, Expression, Literal
from dovetail.query.types import BOOLEAN

_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne", "eq_null_safe": "eq_null_safe"}
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_NEGATED_TESTS = {"is_null": "is_not_null", "is_not_null": "is_null"}


def compare(operator: str, a: Expression, b: Expression) -> Expression:
    """A comparison of two expressions of one type."""
    if isinstance(a, Literal) and not isinstance(b, Literal):
        operator, a, b = _SWAPPED[operator], b, a
    unwrapped = _unwrap_cast(operator, a, b)
    return unwrapped or Call(operator, (a, b), BOOLEAN)


def negate(condition: Expression) -> Expression:
    """NOT, pushed down. Exact for NULL and NaN: Spark orders NaN above all numbers, so `NOT <` is `>=`."""
    if isinstance(condition, Literal):
        return Literal(None if condition.value is None else not condition.value, BOOLEAN)
    if isinstance(condition, Call):
        if condition.function in _NEGATED:
            return Call(_NEGATED[condition.function], condition.args, BOOLEAN)
        if condition.function in _NEGATED_TESTS:
            return Call(_NEGATED_TESTS[condition.function], condition.args, BOOLEAN)
        if condition.function in ("and", "or"):
            other = "or" if condition.function == "and" else "and"
            return Call(other, tuple(negate(arg) for arg in condition.args), BOOLEAN)
        if condition.function == "not":
            return condition.args[0]
    return Call("not", (condition,), BOOLEAN)


def _unwrap_cast(operator: str, a: Expression, b: Expression) -> Expression | None:
    """`CAST(int_column AS wider) < 1.5` is `int_column <= 1`."""
    if not (isinstance(a, Call) and a.function == "cast" and isinstance(b, Literal) and b.value is not None):
        return None
    column_type = a.args[0].type
    if not column_type.is_integer or not (a.type.is_integer or a.type.name == "decimal"):
        return None
    value = Decimal(b.value)
    whole = int(value.to_integral_value(ROUND_FLOOR)) if isinstance(b.value, int) else floor(value)
    if not fits_integer(whole, column_type):
        return None
    if value != whole:
        if operator not in ("lt", "le", "gt", "ge"):
            return None
        operator = "le" if operator in ("lt", "le") else "gt"
    return Call(operator, (a.args[0], Literal(whole, column_type)), BOOLEAN)
