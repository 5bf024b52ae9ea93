"""Conditions as NumPy masks, with fast paths for what selections mostly are.

A mask says where a condition is true, so NULL and false are one. That holds through AND and OR, not
through NOT: negations go through the general kernels.

Spark's filters ask one conjunct after another, and stop at the first that is not true; a value `a AND b`
stops where `a` is false, not where it is NULL. So conjuncts are asked as a filter asks them, and what is
below an OR as a value is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from dovetail.kernels.evaluate.kernels import kernel_of
from dovetail.kernels.evaluate.rows import Mask, Numbers, Rows, numbers, true_mask, valid_mask
from dovetail.query.can_fail import can_fail
from dovetail.query.expression import Call, Column, Expression, Literal

MaskKernel = Callable[[Rows], Mask]
_Operator = Callable[[Numbers, Any], Any]

COMPARED_BY: dict[str, _Operator] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
# NaN is above every constant: `>` must hold for it, so it is the negation of `<=`, which never holds.
_FLOATING_OPERATORS: dict[str, _Operator] = {
    **COMPARED_BY,
    "gt": lambda values, constant: _inverted(np.less_equal(values, constant)),
    "ge": lambda values, constant: _inverted(np.less(values, constant)),
}


def _inverted(mask: Mask) -> Mask:
    """In place: a second array of this size costs more than the comparison."""
    return np.invert(mask, out=mask)


def mask_of(expression: Expression) -> MaskKernel:
    """A function of rows that says where the condition is true."""
    if isinstance(expression, Call):
        if expression.function == "and":
            return _conjunction(expression)
        if expression.function == "or" and not can_fail(expression):
            return _disjunction(expression)
        fast = _constant_comparison(expression)
        if fast is not None:
            return fast
        if expression.function in ("is_null", "is_not_null") and isinstance(expression.args[0], Column):
            return _null_test(expression.args[0], is_wanted=expression.function == "is_not_null")
    if isinstance(expression, Literal):
        holds = expression.value is True
        return lambda rows: np.full(rows.length, holds)
    kernel = kernel_of(expression)
    return lambda rows: true_mask(kernel(rows), rows.length)


def _conjunction(call: Call) -> MaskKernel:
    first, second = (mask_of(arg) for arg in call.args)
    if not can_fail(call.args[1]):
        return lambda rows: first(rows) & second(rows)

    def mask(rows: Rows) -> Mask:
        reached = first(rows)
        if reached.all():
            return second(rows)
        result = np.zeros(rows.length, dtype=bool)
        result[reached] = second(rows.where(reached))
        return result

    return mask


def _disjunction(call: Call) -> MaskKernel:
    first, second = (mask_of(arg) for arg in call.args)
    return lambda rows: first(rows) | second(rows)


def _null_test(column: Column, *, is_wanted: bool) -> MaskKernel:
    def mask(rows: Rows) -> Mask:
        valid = valid_mask(rows.column(column), rows.length)
        return valid if is_wanted else ~valid

    return mask


def _constant_comparison(call: Call) -> MaskKernel | None:
    """Column against constant, on the value buffer itself."""
    if call.function not in COMPARED_BY:
        return None
    column, literal = call.args
    if not isinstance(column, Column) or not isinstance(literal, Literal):
        return None
    constant = plain_constant(literal)
    if constant is None:
        return None
    operators = _FLOATING_OPERATORS if column.type.is_floating else COMPARED_BY
    operator = operators[call.function]

    def mask(rows: Rows) -> Mask:
        array = rows.column(column)
        result: Mask = operator(numbers(array), constant)
        return result & valid_mask(array, rows.length) if array.null_count else result

    return mask


def plain_constant(literal: Literal) -> Any:
    """The constant as it stands in a value buffer, or None where there is no such buffer or order."""
    sql_type, value = literal.type, literal.value
    if value is None or (sql_type.is_floating and math.isnan(value)):
        return None
    if sql_type.name == "date":
        return pa.scalar(value, pa.date32()).value
    if sql_type.name == "float":
        return np.float32(value)
    is_plain = sql_type.is_integer or sql_type.is_floating or sql_type.is_time
    return value if is_plain else None
