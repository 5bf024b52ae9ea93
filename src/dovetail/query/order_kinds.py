"""What planners know of order values (`kernels/match/order_values.py`): which tell all, how far they may be moved."""

from __future__ import annotations

from dovetail.query.types import SqlType

MAX_EXACT_DIGITS = 18
MAX_OFFSET = 1 << 62
"""Of an end of a range; what lies farther is left to the conditions themselves."""


def is_exactly_ordered(sql_type: SqlType) -> bool:
    """Whether different values of this type never have one order value.

    >>> is_exactly_ordered(SqlType("decimal", 18, 2)), is_exactly_ordered(SqlType("decimal", 19, 2))
    (True, False)
    """
    is_short = sql_type.name != "decimal" or sql_type.precision <= MAX_EXACT_DIGITS
    return is_short and sql_type.name != "string"
