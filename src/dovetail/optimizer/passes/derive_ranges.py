"""Conditions over several relations, solved for the stored row: where must it lie to meet a partial result? (B6)

    row.x < m0.y + 5               x up to below y + 5
    ABS(m0.x - row.x) <= 10        x from x - 10 to x + 10
    m0.ts BETWEEN row.a AND row.b  a up to ts, and b from ts on
    row.x = m0.y + m1.z            x at y + z

A comparison is read as a sum: one term of the stored row, one of the members so far, and a constant, however they are
spread over its two sides. What remains of the terms is evaluated as it stands, the constant is added to order values:
that never overflows, so a comparison that Spark could not compute is decided as it is among numbers.

Exact ranges say all that their conditions say, and these are dropped. The others only spare pairs: of strings and of
decimals beyond 18 digits, which order values tell coarsely, and of rounded differences of floating point numbers. NaN
is why `m0.x - row.x >= c` has no range: it holds for a stored NaN, which lies above everything.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from dovetail.plan.probe_tree import RangeEnd, StoredRange
from dovetail.plan.store_plan import ROW
from dovetail.query.can_fail import can_fail, fails_itself
from dovetail.query.expression import Call, Expression, Literal, relations_of, shown_timestamp, walk
from dovetail.query.order_kinds import MAX_EXACT_DIGITS, MAX_OFFSET, is_exactly_ordered
from dovetail.query.types import INTERVAL, MAX_DECIMAL_PRECISION, TIMESTAMP, SqlType

_DAY_US = 86_400_000_000
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
_OVERFLOWING = frozenset({"add", "sub", "mul", "neg", "abs", "time_add", "time_diff", "date_add", "date_sub"})
_COUNTED = ("integer", "date", "interval", "timestamp", "timestamp_ntz")
"""Kinds of values to which whole units can be added."""
_SHIFTS = {"add": 1, "sub": -1, "time_add": 1, "date_add": 1, "date_sub": -1}


@dataclass(frozen=True)
class DerivedRanges:
    """One range per expression of the stored row, and the conditions that are still to be asked."""

    ranges: tuple[StoredRange, ...]
    residuals: tuple[Expression, ...]


def derive_ranges(residuals: Iterable[Expression], without: Collection[Expression] = ()) -> DerivedRanges:
    """`residuals` speak of `row` and of members. Of several ends of one expression's range the first counts.

    Ranges of expressions in `without` are not wanted.
    """
    ends_by_stored: dict[Expression, dict[str, _Solved]] = {}
    left = []
    for residual in residuals:
        solved = solve_for_row(residual)
        is_wanted = bool(solved) and solved[0].stored not in without
        ends = ends_by_stored.setdefault(solved[0].stored, {}) if is_wanted else {}
        if not is_wanted or any(each.side in ends for each in solved):
            left.append(residual)
            continue
        ends |= {each.side: each for each in solved}
        if not all(each.is_exact for each in solved):
            left.append(residual)
    return DerivedRanges(tuple(_range(stored, ends) for stored, ends in ends_by_stored.items()), tuple(left))


def _range(stored: Expression, ends: dict[str, _Solved]) -> StoredRange:
    lower, upper = ends.get("lower"), ends.get("upper")
    return StoredRange(
        stored,
        None if lower is None else lower.end,
        None if upper is None else upper.end,
        is_exact=all(each.is_exact for each in ends.values()),
    )


@dataclass(frozen=True)
class _Solved:
    """`stored` must lie from (`side` "lower") or up to ("upper") `end`."""

    stored: Expression
    side: str
    end: RangeEnd
    is_exact: bool


def solve_for_row(condition: Expression) -> tuple[_Solved, ...]:
    """The ends that say the same as the condition, or at least what follows from it; none if there are none."""
    if not isinstance(condition, Call) or condition.function not in _SWAPPED:
        return ()
    left, right = condition.args
    inner = _without_widening(left)
    if isinstance(inner, Call) and inner.function == "abs" and isinstance(right, Literal):
        if condition.function not in ("lt", "le") or right.value is None:
            return ()
        swapped = _SWAPPED[condition.function]
        lower = _solve(inner.args[0], swapped, Literal(-right.value, right.type), is_absolute=True)
        upper = _solve(inner.args[0], condition.function, right, is_absolute=True)
        return (*lower, *upper) if lower and upper else ()
    return _solve(left, condition.function, right)


def _solve(left: Expression, operator: str, right: Expression, *, is_absolute: bool = False) -> tuple[_Solved, ...]:
    difference = _float_difference(left)
    if difference is not None:
        return _solve_floats(difference, operator, right, is_absolute=is_absolute)
    sums = _sum_of(left), _sum_of(right)
    if sums[0] is None or sums[1] is None:
        return ()
    total = sums[0].plus(sums[1], -1)
    stored = [term for term in total.terms if relations_of(term[1]) == {ROW}]
    members = [term for term in total.terms if ROW not in relations_of(term[1])]
    if len(total.terms) != 2 or len(stored) != 1 or len(members) != 1 or stored[0][0] == members[0][0]:
        return ()
    sign, expression = stored[0]
    aligned = _aligned(expression, members[0][1], -sign * total.constant)
    if aligned is None:
        return ()
    return tuple(_ends(aligned, operator if sign > 0 else _SWAPPED[operator]))


@dataclass(frozen=True)
class _Aligned:
    """`stored` compares with `value` plus `offset` order values."""

    stored: Expression
    value: Expression
    offset: int | float
    is_exact: bool


def _ends(aligned: _Aligned, operator: str) -> Iterator[_Solved]:
    is_inclusive = operator in ("le", "ge", "eq") or not aligned.is_exact
    end = RangeEnd(aligned.value, aligned.offset, is_inclusive)
    if operator in ("gt", "ge", "eq"):
        yield _Solved(aligned.stored, "lower", end, aligned.is_exact)
    if operator in ("lt", "le", "eq"):
        yield _Solved(aligned.stored, "upper", end, aligned.is_exact)


def _aligned(stored: Expression, value: Expression, constant: Decimal) -> _Aligned | None:
    """Both as they are evaluated, of one type and scale; None where order values of the two do not compare."""
    if not (_may_go_first(stored) and _may_go_first(value)):
        return None
    if stored.type.name == "decimal" and value.type.name == "decimal":
        scale = max(stored.type.scale, value.type.scale, -int(constant.as_tuple().exponent), 0)
        sides = _rescaled(stored, scale), _rescaled(value, scale)
        if sides[0] is not None and sides[1] is not None:
            return _with_units(sides[0], sides[1], constant.scaleb(scale))
    kinds = _order_kind(stored.type), _order_kind(value.type)
    if kinds[0] != kinds[1]:
        return None
    if kinds[0] in _COUNTED:
        return _with_units(stored, value, constant)
    return None if constant else _Aligned(stored, value, 0, is_exactly_ordered(stored.type))


def _order_kind(sql_type: SqlType) -> str:
    """Order values of one kind compare, whatever the widths of their types."""
    if sql_type.is_integer:
        return "integer"
    return "floating" if sql_type.is_floating else str(sql_type)


def _with_units(stored: Expression, value: Expression, offset: Decimal) -> _Aligned | None:
    if offset != offset.to_integral_value() or abs(offset) > MAX_OFFSET:
        return None
    return _Aligned(stored, value, int(offset), is_exact=True)


def _rescaled(side: Expression, scale: int) -> Expression | None:
    precision = side.type.precision + scale - side.type.scale
    if precision > min(MAX_EXACT_DIGITS, MAX_DECIMAL_PRECISION):
        return None
    wanted = SqlType("decimal", precision, scale)
    return side if side.type == wanted else Call("cast", (side,), wanted)


def _may_go_first(expression: Expression) -> bool:
    """Whether it may be evaluated before other conditions: these may guard it from failing, but not from overflow."""
    calls = (part for part in walk(expression) if isinstance(part, Call))
    return all(_overflows_at_most(call) or not fails_itself(call) for call in calls)


def _overflows_at_most(call: Call) -> bool:
    return call.function in _OVERFLOWING or shown_timestamp(call) is not None


def is_safe_for_all_rows(stored: Expression) -> bool:
    """Whether it can be evaluated for rows that nobody may want."""
    return not can_fail(stored)


# -- sums ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sum:
    """Terms with their signs, and a constant: a number, days or microseconds."""

    terms: tuple[tuple[int, Expression], ...]
    constant: Decimal

    def plus(self, other: _Sum, sign: int) -> _Sum:
        moved = tuple((sign * own, term) for own, term in other.terms)
        return _Sum((*self.terms, *moved), self.constant + sign * other.constant)


def _sum_of(expression: Expression) -> _Sum | None:
    """An expression of one side is one term, but for a constant; only where sides mix it is taken apart."""
    if isinstance(expression, Literal):
        is_number = expression.type.is_integer or expression.type.name == "decimal" or expression.type == INTERVAL
        return _Sum((), Decimal(expression.value)) if is_number and expression.value is not None else None
    relations = relations_of(expression)
    shift = _shift_of(expression)
    if shift is not None:
        inner, constant = shift
        found = _sum_of(inner)
        return None if found is None else found.plus(_Sum((), constant), 1)
    bare = _without_widening(expression)
    if bare != expression:
        return _sum_of(bare)
    if relations == {ROW} or ROW not in relations:
        return _Sum(((1, expression),), Decimal(0))
    return _sum_of_mixed(expression)


def _sum_of_mixed(expression: Expression) -> _Sum | None:
    if not isinstance(expression, Call) or expression.type.is_floating:
        return None
    if expression.function == "neg":
        inner = _sum_of(expression.args[0])
        return None if inner is None else _Sum((), Decimal(0)).plus(inner, -1)
    if expression.function not in ("add", "sub", "time_diff", "datediff") or _drops_digits(expression):
        return None
    first, second = (_sum_of(arg) for arg in expression.args)
    if first is None or second is None:
        return None
    return first.plus(second, 1 if expression.function == "add" else -1)


def _shift_of(expression: Expression) -> tuple[Expression, Decimal] | None:
    """`x` and 5 of `x + 5`. Days of a timestamp may have 23 or 25 hours: these are for SQL's arithmetic."""
    if not isinstance(expression, Call) or expression.function not in _SHIFTS or expression.type.is_floating:
        return None
    value, shift = expression.args
    if not isinstance(shift, Literal) or shift.value is None or _drops_digits(expression):
        return None
    constant = _SHIFTS[expression.function] * Decimal(shift.value)
    if expression.type == TIMESTAMP and abs(constant) >= _DAY_US:
        return None
    return value, constant


def _drops_digits(call: Call) -> bool:
    """Decimals of many digits are rounded by arithmetic."""
    return call.type.name == "decimal" and any(call.type.scale < arg.type.scale for arg in call.args)


def _without_widening(expression: Expression) -> Expression:
    """The same number before it was cast to a type with room for it."""
    while (
        isinstance(expression, Call)
        and expression.function == "cast"
        and expression.type.name not in ("string", "boolean")
        and _is_same_kind(expression.args[0].type, expression.type)
        and not fails_itself(expression)
    ):
        expression = expression.args[0]
    return expression


def _is_same_kind(source: SqlType, target: SqlType) -> bool:
    return (
        (source.is_integer and target.is_integer)
        or (source.is_floating and target.is_floating)
        or (source.name == target.name == "decimal")
    )


# -- floating point --------------------------------------------------------------------------------


def _float_difference(expression: Expression) -> tuple[int, Expression, Expression] | None:
    """`row - member` (1) or `member - row` (-1) as (sign, stored, value)."""
    bare = _without_widening(expression)
    if not isinstance(bare, Call) or bare.function != "sub" or not bare.type.is_floating:
        return None
    first, second = bare.args
    sides = relations_of(first), relations_of(second)
    if sides[0] == {ROW} and sides[1] and ROW not in sides[1]:
        return 1, first, second
    if sides[1] == {ROW} and sides[0] and ROW not in sides[0]:
        return -1, second, first
    return None


def _solve_floats(
    difference: tuple[int, Expression, Expression], operator: str, right: Expression, *, is_absolute: bool
) -> tuple[_Solved, ...]:
    sign, stored, value = difference
    if not isinstance(right, Literal) or right.value is None or operator == "eq" or math.isnan(float(right.value)):
        return ()
    if sign < 0 and operator in ("gt", "ge") and not is_absolute:
        return ()
    if not (_may_go_first(stored) and _may_go_first(value)):
        return ()
    limit = float(right.value)
    solved = operator if sign > 0 else _SWAPPED[operator]
    return tuple(_ends(_Aligned(stored, value, sign * limit, is_exact=False), solved))
