"""Texts that can only fail are refused, at the place of the part that does."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.core.errors import EvaluationError, UnsupportedSql
from dovetail.frontend.parse.source_text import Bound, SourceText
from dovetail.query.expression import Expression
from dovetail.query.sql_text import column_name, sql_text
from dovetail.query.types import WINDOW

TryOut = Callable[[Expression], None]
"""Raises an `EvaluationError` for an expression that can only fail; its `part`, if it has one, is what does."""


def refuse_failing(source: SourceText, try_out: TryOut) -> None:
    for bound in source.bound:
        _refuse_failing(bound, source, try_out)


def _refuse_failing(bound: Bound, source: SourceText, try_out: TryOut) -> None:
    expression, node = bound[-1]
    if expression.type == WINDOW:
        return
    try:
        try_out(expression)
    except EvaluationError as error:
        part = getattr(error, "part", expression)
        place = next((own for each, own in bound if each == part), node)
        raise UnsupportedSql(
            f"{sql_text(part, column_name)} can only fail: {error.what}",
            where=source.where(place),
            hint=error.hint or "write a value that Spark takes, or leave it out",
        ) from None
