"""One type for the branches of CASE, IF, COALESCE, IN, GREATEST and the like."""

from __future__ import annotations

from dovetail.frontend.bind.coerce import cast_to, common_type_of
from dovetail.query.expression import Expression, Literal
from dovetail.query.types import STRING, SqlType

_TIME_NAMES = ("date", "timestamp", "timestamp_ntz")


def merge_branches(expressions: list[Expression], timezone: str) -> list[Expression] | None:
    """All of them in their common type; None if there is none."""
    strings = [e for e in expressions if _is_string(e)]
    others = [e for e in expressions if not _is_string(e)]
    target: SqlType | None = common_type_of(expressions)
    if target is None and strings and others:
        # String constants beside times are read as times, as Spark does.
        target = common_type_of(others)
        if target is None or target.name not in _TIME_NAMES:
            return None
    if target is None:
        return None
    if target.name in _TIME_NAMES and any(not isinstance(cast_to(s, target, timezone), Literal) for s in strings):
        return None
    return [cast_to(expression, target, timezone) for expression in expressions]


def _is_string(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.type == STRING
