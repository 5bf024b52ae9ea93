"""Expression to kernel: the table of functions, and the operators that choose which rows to evaluate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.arithmetic import ARITHMETIC
from dovetail.kernels.evaluate.cast import cast_value
from dovetail.kernels.evaluate.compare import COMPARISONS, is_in
from dovetail.kernels.evaluate.guard import evaluate_where, operands_of
from dovetail.kernels.evaluate.numbers import NUMBERS
from dovetail.kernels.evaluate.rows import Kernel, Mask, Rows, Value, as_array, spread, true_mask, valid_mask
from dovetail.kernels.evaluate.strings import STRINGS
from dovetail.kernels.evaluate.time import TIMES
from dovetail.query.can_fail import can_fail
from dovetail.query.expression import Call, Column, Expression, Literal

Function = Callable[[list[Value], Call, Rows], Value]

FUNCTIONS: dict[str, Function] = {**COMPARISONS, **ARITHMETIC, **NUMBERS, **STRINGS, **TIMES, "cast": cast_value}


def kernel_of(expression: Expression) -> Kernel:
    """A function of rows that gives the expression's values."""
    if isinstance(expression, Column):
        column = expression
        return lambda rows: rows.column(column)
    if isinstance(expression, Literal):
        return _literal_kernel(expression)
    special = _SPECIAL.get(expression.function)
    if special is not None:
        return special(expression)
    function = FUNCTIONS.get(expression.function)
    if function is None:
        raise ValueError(f"no kernel for {expression.function}")
    return _call_kernel(expression, function)


def _call_kernel(call: Call, function: Function) -> Kernel:
    operands = operands_of(call, tuple(kernel_of(arg) for arg in call.args))
    return lambda rows: function(operands(rows), call, rows)


def _literal_kernel(literal: Literal) -> Kernel:
    scalar_by_zone: dict[str, pa.Scalar] = {}

    def kernel(rows: Rows) -> Value:
        scalar = scalar_by_zone.get(rows.timezone)
        if scalar is None:
            scalar = pa.scalar(literal.value, arrow_type(literal.type, rows.timezone))
            scalar_by_zone[rows.timezone] = scalar
        return scalar

    return kernel


def _and_kernel(call: Call) -> Kernel:
    return _connective(call, pc.and_kleene, stop_at=False)


def _or_kernel(call: Call) -> Kernel:
    return _connective(call, pc.or_kleene, stop_at=True)


def _connective(call: Call, combine: Callable[[Value, Value], Value], *, stop_at: bool) -> Kernel:
    first, second = (kernel_of(arg) for arg in call.args)
    if not can_fail(call.args[1]):
        return lambda rows: combine(first(rows), second(rows))

    def kernel(rows: Rows) -> Value:
        left = first(rows)
        decided = true_mask(left if stop_at else pc.invert(left), rows.length)
        return combine(as_array(left, rows.length), evaluate_where(second, rows, ~decided))

    return kernel


def _case_kernel(call: Call) -> Kernel:
    """`case(condition, value, condition, value, ..., default)`."""
    *pairs, default = (kernel_of(arg) for arg in call.args)
    conditions, values = pairs[::2], pairs[1::2]
    if not any(can_fail(arg) for arg in call.args[1:]):

        def plain(rows: Rows) -> Value:
            result = default(rows)
            for condition, value in zip(conditions[::-1], values[::-1], strict=True):
                chosen = as_array(pc.fill_null(condition(rows), False), rows.length)
                result = pc.if_else(chosen, value(rows), result)
            return result

        return plain

    def guarded(rows: Rows) -> Value:
        undecided = np.ones(rows.length, dtype=bool)
        result: Value = pa.nulls(rows.length, arrow_type(call.type, rows.timezone))
        for condition, value in zip(conditions, values, strict=True):
            chosen = true_mask(evaluate_where(condition, rows, undecided), rows.length)
            result = _put(result, value, rows, chosen & undecided)
            undecided &= ~chosen
        return _put(result, default, rows, undecided)

    return guarded


def _put(result: Value, kernel: Kernel, rows: Rows, mask: Mask) -> Value:
    if not mask.any():
        return result
    return pc.if_else(pa.array(mask), spread(kernel(rows.where(mask)), mask), result)


def _coalesce_kernel(call: Call) -> Kernel:
    kernels = [kernel_of(arg) for arg in call.args]
    if not any(can_fail(arg) for arg in call.args[1:]):
        return lambda rows: pc.coalesce(*(kernel(rows) for kernel in kernels))

    def guarded(rows: Rows) -> Value:
        result = as_array(kernels[0](rows), rows.length)
        for kernel in kernels[1:]:
            missing = ~valid_mask(result, rows.length)
            result = _put(result, kernel, rows, missing)
        return result

    return guarded


def _extreme_kernel(call: Call) -> Kernel:
    """`greatest` and `least`: every argument is evaluated, and NULLs are passed over."""
    kernels = [kernel_of(arg) for arg in call.args]
    wins = COMPARISONS["gt" if call.function == "greatest" else "lt"]

    def kernel(rows: Rows) -> Value:
        result = as_array(kernels[0](rows), rows.length)
        for other in kernels[1:]:
            value = as_array(other(rows), rows.length)
            is_better = pc.fill_null(wins([value, result], call, rows), False)
            replaced = pc.or_(is_better, pc.is_null(result))
            result = pc.if_else(replaced, value, result)
        return result

    return kernel


def _in_kernel(call: Call) -> Kernel:
    return is_in(kernel_of(call.args[0]), call)


def _struct_kernel(call: Call) -> Kernel:
    kernels = [kernel_of(arg) for arg in call.args]

    def kernel(rows: Rows) -> Value:
        wanted = arrow_type(call.type, rows.timezone)
        fields = [as_array(field(rows), rows.length) for field in kernels]
        names = [wanted.field(position).name for position in range(wanted.num_fields)]
        # Every window has a start; a row that an outer join pads has no window.
        missing = fields[0].is_null() if fields[0].null_count else None
        return pa.StructArray.from_arrays(fields, names=names, mask=missing)

    return kernel


_SPECIAL: dict[str, Callable[[Call], Kernel]] = {
    "and": _and_kernel,
    "or": _or_kernel,
    "case": _case_kernel,
    "coalesce": _coalesce_kernel,
    "greatest": _extreme_kernel,
    "least": _extreme_kernel,
    "in": _in_kernel,
    "struct": _struct_kernel,
}
