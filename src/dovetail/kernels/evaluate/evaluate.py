"""Expressions over arrays, with the meaning they have in Spark SQL under ANSI mode.

An expression is compiled once into a chain of closures (`Kernel`) and then runs on batches of any
length. What is exact here and easily lost:
  - NULL logic of three values; NaN equals NaN and is above all other numbers;
  - overflow, division by zero and bad casts raise `EvaluationError`, but only for rows that reach
    the failing part: branches of CASE and COALESCE, the right side of AND and OR, and operands
    beside a NULL are evaluated for the rows that need them (see `evaluate_guard`).
Whatever else goes wrong, Arrow's own errors and a lack of memory included, is an `EvaluationError`,
too: somebody's text asked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa

from dovetail.core.errors import charged, is_chargeable
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.kernels import kernel_of
from dovetail.kernels.evaluate.masks import mask_of
from dovetail.kernels.evaluate.rows import Kernel, Mask, Rows, as_array
from dovetail.kernels.evaluate.sizes import MAX_WIDE_BYTES, in_smaller_pieces, joined_arrays
from dovetail.query.expression import Column, Expression
from dovetail.query.sql_text import column_name, sql_text

MAX_COMPILED = 20_000

_kernel = lru_cache(maxsize=MAX_COMPILED)(kernel_of)
_mask = lru_cache(maxsize=MAX_COMPILED)(mask_of)


def evaluate(
    expression: Expression,
    column_of: Callable[[Column], pa.Array],
    length: int,
    *,
    timezone: str = "UTC",
    most_bytes: int = MAX_WIDE_BYTES,
) -> pa.Array:
    """The value of `expression` for each of `length` rows; `timezone` is the Spark session's.

    Texts with more than `most_bytes` together are a `ColumnTooLarge`.
    """
    with _named_errors(expression):
        wanted = arrow_type(expression.type, timezone)
        if isinstance(expression, Column):
            # By far the most: nothing is computed.
            column = column_of(expression)
            if column.type == wanted:
                return column
        kernel: Kernel = _kernel(expression)
        widest = most_bytes if is_wide(expression) else None

        def values(rows: Rows) -> pa.Array:
            value = as_array(kernel(rows), rows.length)
            return value if value.type == wanted else value.cast(wanted)

        return in_smaller_pieces(values, Rows(column_of, length, timezone), joined_arrays, most_bytes=widest)


def is_wide(expression: Expression) -> bool:
    """Whether its values may have any number of bytes."""
    return expression.type.name in ("string", "binary")


def evaluate_mask(
    expression: Expression, column_of: Callable[[Column], pa.Array], length: int, *, timezone: str = "UTC"
) -> Mask:
    """Where a condition is true; NULL counts as false."""
    with _named_errors(expression):
        return in_smaller_pieces(_mask(expression), Rows(column_of, length, timezone), np.concatenate, most_bytes=None)


class _named_errors:  # noqa: N801 - a context manager, cheaper than contextlib's on a hot path
    """Whatever goes wrong inside is an `EvaluationError` that names the expression.

    What is not the expression's fault, such as a broken file, stays what it is.
    """

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception) or not is_chargeable(error):
            return
        failure = charged(error)
        if failure.where is None:
            failure.where = sql_text(self.expression, column_name)
            failure.args = (failure.told(),)
        if failure is not error:
            raise failure from error
