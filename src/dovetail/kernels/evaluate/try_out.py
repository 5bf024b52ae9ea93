"""Expressions tried out before any row comes: what can only fail is found when it is written, not when it runs.

As Spark's optimizer does, the largest parts without a column are evaluated, with the very kernels that would run. One
that fails under CASE or COALESCE may never be reached, and stays. The rest is evaluated over no rows: patterns are
compiled, constants are converted, and types that no kernel takes are found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from dovetail.core.errors import EvaluationError
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.query.expression import Call, Column, Expression, Literal, columns_of, walk
from dovetail.query.types import STRING

_CONDITIONAL = ("case", "coalesce")


class CanOnlyFail(EvaluationError):
    """`part` is the smallest part of the expression that fails by itself."""

    def __init__(self, part: Expression, error: EvaluationError) -> None:
        super().__init__(error.what, where=error.where, hint=error.hint)
        self.part = part


def try_out(expression: Expression, timezone: str) -> None:
    """Raises `CanOnlyFail` if no row could be answered."""
    for constant in _constants(expression):
        _evaluate(constant, timezone, 1)
    for match in _matches(expression):
        # Asked of an empty text: the pattern is compiled whether a row reaches it or not.
        try:
            _evaluate(replace(match, args=(Literal("", STRING), *match.args[1:])), timezone, 1)
        except CanOnlyFail as error:
            raise CanOnlyFail(match, error) from None
    _evaluate(expression, timezone, 0)


def _evaluate(expression: Expression, timezone: str, rows: int) -> None:
    def nothing(column: Column) -> pa.Array:
        return pa.nulls(rows, arrow_type(column.type, timezone))

    try:
        evaluate(expression, nothing, rows, timezone=timezone)
    except EvaluationError as error:
        for part in expression.args if isinstance(expression, Call) else ():
            _evaluate(part, timezone, rows)
        raise CanOnlyFail(expression, error) from None


def _matches(expression: Expression) -> Iterator[Call]:
    """Every match with a pattern."""
    for part in walk(expression):
        if isinstance(part, Call) and part.function in ("rlike", "like"):
            yield part


def _constants(expression: Expression) -> Iterator[Expression]:
    """The largest parts without a column that every row reaches."""
    if isinstance(expression, Literal):
        return  # converted with the whole; a list may have thousands
    if not columns_of(expression):
        yield expression
    elif isinstance(expression, Call) and expression.function not in _CONDITIONAL:
        for arg in expression.args:
            yield from _constants(arg)
