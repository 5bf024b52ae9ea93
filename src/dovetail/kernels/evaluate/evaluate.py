"""Expressions over arrays, with the meaning they have in Spark SQL under ANSI mode.

An expression is compiled once into a chain of closures (`Kernel`) and then runs on batches of any
length. What is exact here and easily lost:
  - NULL logic of three values; NaN equals NaN and is above all other numbers;
  - overflow, division by zero and bad casts raise `EvaluationError`, but only for rows that reach
    the failing part: branches of CASE and COALESCE, the right side of AND and OR, and operands
    beside a NULL are evaluated for the rows that need them (see `evaluate_guard`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from dovetail.core.errors import EvaluationError
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.kernels import kernel_of
from dovetail.kernels.evaluate.masks import mask_of
from dovetail.kernels.evaluate.rows import Kernel, Mask, Rows, as_array
from dovetail.query.expression import Column, Expression
from dovetail.query.sql_text import column_name, sql_text

MAX_COMPILED = 20_000

_kernel = lru_cache(maxsize=MAX_COMPILED)(kernel_of)
_mask = lru_cache(maxsize=MAX_COMPILED)(mask_of)


def evaluate(
    expression: Expression, column_of: Callable[[Column], pa.Array], length: int, *, timezone: str = "UTC"
) -> pa.Array:
    """The value of `expression` for each of `length` rows; `timezone` is the Spark session's."""
    kernel: Kernel = _kernel(expression)
    with _named_errors(expression):
        value = as_array(kernel(Rows(column_of, length, timezone)), length)
    wanted = arrow_type(expression.type, timezone)
    return value if value.type == wanted else value.cast(wanted)


def evaluate_mask(
    expression: Expression, column_of: Callable[[Column], pa.Array], length: int, *, timezone: str = "UTC"
) -> Mask:
    """Where a condition is true; NULL counts as false."""
    with _named_errors(expression):
        return _mask(expression)(Rows(column_of, length, timezone))


class _named_errors:  # noqa: N801 - a context manager, cheaper than contextlib's on a hot path
    """Adds the failing expression to an `EvaluationError`."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EvaluationError) and error.where is None:
            raise EvaluationError(error.what, where=sql_text(self.expression, column_name), hint=error.hint) from None
