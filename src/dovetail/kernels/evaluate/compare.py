"""Comparisons and NULL tests. NaN equals NaN and is above all other numbers, as in Spark; -0.0 equals 0.0."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.rows import Kernel, Rows, Value
from dovetail.query.expression import Call, Literal
from dovetail.query.types import DOUBLE

Function = Callable[[list[Value], Call, Rows], Value]


def _is_floating(value: Value) -> bool:
    return bool(pa.types.is_floating(value.type))


def _eq(args: list[Value], call: Call, rows: Rows) -> Value:
    a, b = args
    equal = pc.equal(a, b)
    return pc.or_(equal, pc.and_(pc.is_nan(a), pc.is_nan(b))) if _is_floating(a) else equal


def _lt(args: list[Value], call: Call, rows: Rows) -> Value:
    a, b = args
    less = pc.less(a, b)
    return pc.or_(less, pc.and_(pc.invert(pc.is_nan(a)), pc.is_nan(b))) if _is_floating(a) else less


def _le(args: list[Value], call: Call, rows: Rows) -> Value:
    a, b = args
    at_most = pc.less_equal(a, b)
    # `or_` (not Kleene) keeps NULL where a side is NULL, which is_nan alone would not.
    return pc.or_(at_most, pc.is_nan(b)) if _is_floating(a) else at_most


def _ne(args: list[Value], call: Call, rows: Rows) -> Value:
    return pc.invert(_eq(args, call, rows))


def _gt(args: list[Value], call: Call, rows: Rows) -> Value:
    return _lt(args[::-1], call, rows)


def _ge(args: list[Value], call: Call, rows: Rows) -> Value:
    return _le(args[::-1], call, rows)


def _eq_null_safe(args: list[Value], call: Call, rows: Rows) -> Value:
    a, b = args
    both_null = pc.and_(pc.is_null(a), pc.is_null(b))
    return pc.or_(pc.fill_null(_eq(args, call, rows), False), both_null)


def _not(args: list[Value], call: Call, rows: Rows) -> Value:
    return pc.invert(args[0])


def _is_null(args: list[Value], call: Call, rows: Rows) -> Value:
    return pc.is_null(args[0])


def _is_not_null(args: list[Value], call: Call, rows: Rows) -> Value:
    return pc.is_valid(args[0])


def _is_nan(args: list[Value], call: Call, rows: Rows) -> Value:
    return pc.fill_null(pc.is_nan(args[0]), False)


COMPARISONS: dict[str, Function] = {
    "eq": _eq,
    "ne": _ne,
    "lt": _lt,
    "le": _le,
    "gt": _gt,
    "ge": _ge,
    "eq_null_safe": _eq_null_safe,
    "not": _not,
    "is_null": _is_null,
    "is_not_null": _is_not_null,
    "is_nan": _is_nan,
}


def is_in(value: Kernel, call: Call) -> Kernel:
    """`in(value, constants...)`: NULL where the value is NULL, or where nothing matches and a constant is NULL."""
    literals = [arg for arg in call.args[1:] if isinstance(arg, Literal)]
    constants = [literal.value for literal in literals if literal.value is not None]
    has_null = len(constants) < len(literals)
    value_type = call.args[0].type

    def kernel(rows: Rows) -> Value:
        tested = value(rows)
        members = pa.array(constants, arrow_type(value_type, rows.timezone))
        if value_type.is_floating or value_type == DOUBLE:
            # Arrow tells -0.0 from 0.0 in sets; adding zero makes them one.
            members = pc.add(members, pa.scalar(0.0, members.type))
            found = pc.is_in(pc.add(tested, pa.scalar(0.0, members.type)), value_set=members)
        else:
            found = pc.is_in(tested, value_set=members)
        unknown = pc.is_null(tested)
        if has_null:
            unknown = pc.or_(unknown, pc.invert(found))
        return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)

    return kernel
