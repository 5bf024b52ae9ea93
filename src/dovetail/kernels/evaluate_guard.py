"""Which expressions can fail, and how to keep them from rows that Spark would not evaluate.

Spark evaluates operands from left to right and stops at the first NULL of an operator that gives
NULL for it; a branch of CASE only runs where its condition holds. Evaluating everything everywhere
would fail on rows where Spark answers. What cannot fail is evaluated everywhere: that is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dovetail.kernels.evaluate_rows import Kernel, Mask, Rows, Value, spread, valid_mask
from dovetail.query.expression import Call, Expression
from dovetail.query.types import SqlType

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_FAILS_ON_EXACT = ("add", "sub", "mul", "neg", "abs", "round", "bround", "floor", "ceil")
_RIGHT_FIRST = ("div", "intdiv", "mod", "pmod")  # Spark looks at the divisor first
_ALWAYS_FAILS = ("div", "intdiv", "mod", "pmod", "time_add", "time_diff", "date_add", "date_sub", "timestamp_from")


@lru_cache(maxsize=20_000)
def can_fail(expression: Expression) -> bool:
    """Whether some row may raise. True is always safe, false must be certain."""
    if not isinstance(expression, Call):
        return False
    return fails_itself(expression) or any(can_fail(arg) for arg in expression.args)


def fails_itself(call: Call) -> bool:
    """Whether it may raise for some operands, whatever they are made of."""
    if call.function in _ALWAYS_FAILS:
        return True
    if call.function in _FAILS_ON_EXACT:
        return not call.type.is_floating
    if call.function == "cast":
        return not _is_widening(call.args[0].type, call.type)
    return False


def _is_widening(source: SqlType, target: SqlType) -> bool:
    if source.is_integer and target.is_integer:
        return _INTEGER_BITS[source.name] <= _INTEGER_BITS[target.name]
    if source.is_numeric and target.is_floating:
        return True
    if source.is_integer and target.name == "decimal":
        return target.precision - target.scale >= {8: 3, 16: 5, 32: 10, 64: 19}[_INTEGER_BITS[source.name]]
    if source.name == "decimal" and target.name == "decimal":
        integral_grows = target.precision - target.scale >= source.precision - source.scale
        return integral_grows and target.scale >= source.scale
    return source.name == "null" or target.name == "string" or (target.name == "boolean" and source.is_numeric)


def operands_of(call: Call, kernels: tuple[Kernel, ...]) -> Callable[[Rows], list[Value]]:
    risky = tuple(can_fail(arg) for arg in call.args)
    if call.function in _RIGHT_FIRST:
        backwards = _Operands(kernels[::-1], risky[::-1])
        return lambda rows: backwards(rows)[::-1]
    return _Operands(kernels, risky)


class _Operands:
    """Evaluates operands left to right; one that can fail runs only where those before are not NULL."""

    def __init__(self, kernels: tuple[Kernel, ...], risky: tuple[bool, ...]) -> None:
        self.kernels = kernels
        self.risky = risky
        self.is_plain = not any(risky[1:])

    def __call__(self, rows: Rows) -> list[Value]:
        if self.is_plain:
            return [kernel(rows) for kernel in self.kernels]
        values = [self.kernels[0](rows)]
        for kernel, is_risky in zip(self.kernels[1:], self.risky[1:], strict=True):
            reached = np.ones(rows.length, dtype=bool)
            for value in values:
                reached &= valid_mask(value, rows.length)
            values.append(evaluate_where(kernel, rows, reached) if is_risky else kernel(rows))
        return values


def evaluate_where(kernel: Kernel, rows: Rows, mask: Mask) -> Value:
    """The kernel's values for the rows under `mask`, NULL elsewhere."""
    if mask.all():
        return kernel(rows)
    return spread(kernel(rows.where(mask)), mask)
