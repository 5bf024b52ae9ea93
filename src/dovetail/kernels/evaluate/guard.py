"""How to keep expressions that can fail from rows that Spark would not evaluate.

Spark evaluates operands from left to right and stops at the first NULL of an operator that gives
NULL for it; a branch of CASE only runs where its condition holds. `<=>` gives no NULL for a NULL, so
it stops nowhere. Evaluating everything everywhere would fail on rows where Spark answers. What
cannot fail is evaluated everywhere: that is faster.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dovetail.kernels.evaluate.rows import Kernel, Mask, Rows, Value, spread, valid_mask
from dovetail.query.can_fail import can_fail
from dovetail.query.expression import Call

_ORDERS = {
    **dict.fromkeys(("div", "intdiv", "mod", "pmod"), (1, 0)),  # Spark looks at the divisor first
    "locate": (2, 0, 1),  # a start that is NULL gives 0, whatever the texts are
}
"""Which operand goes before which, where it is not from left to right."""
_TAKES_NULLS = ("eq_null_safe",)
"""What a NULL is a value for like any other: all operands are needed of every row."""


def operands_of(call: Call, kernels: tuple[Kernel, ...]) -> Callable[[Rows], list[Value]]:
    if call.function in _TAKES_NULLS:
        return lambda rows: [kernel(rows) for kernel in kernels]
    risky = tuple(can_fail(arg) for arg in call.args)
    order = _ORDERS.get(call.function)
    if order is None:
        return _Operands(kernels, risky)
    in_order = _Operands(tuple(kernels[place] for place in order), tuple(risky[place] for place in order))
    places = [order.index(place) for place in range(len(order))]

    def operands(rows: Rows) -> list[Value]:
        values = in_order(rows)
        return [values[place] for place in places]

    return operands


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
