"""Comparisons of event times to `TimeBound`s.

A side of a comparison is read as a sum: event times with a sign, and microseconds. `later - earlier
<= c` is a bound however the user spread the three over the two sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.query.expression import Call, Column, Expression, Literal, shown_timestamp, walk
from dovetail.query.join_query import TimeBound
from dovetail.query.time_text import offset_range_us
from dovetail.query.types import INTERVAL, TIMESTAMP

DAY_US = 86_400_000_000


@dataclass(frozen=True)
class TimeSum:
    """`sum of count * event time of alias` plus `offset_us`."""

    counts: Mapping[str, int]
    offset_us: int

    def minus(self, other: TimeSum) -> TimeSum:
        aliases = {*self.counts, *other.counts}
        counts = {alias: self.counts.get(alias, 0) - other.counts.get(alias, 0) for alias in sorted(aliases)}
        nonzero = {alias: count for alias, count in counts.items() if count}
        return TimeSum(nonzero, self.offset_us - other.offset_us)


def time_bounds_of(condition: Expression, event_time_by_alias: Mapping[str, Column | None]) -> tuple[TimeBound, ...]:
    """The bounds that say the same as `condition`, but for its `slack_us`; empty if it is no such comparison.

    For `eq` the two bounds say the same too, but the caller keeps the equality as a join key.
    """
    if not isinstance(condition, Call) or condition.function not in ("lt", "le", "gt", "ge", "eq"):
        return ()
    sides = [_time_sum(side, event_time_by_alias) for side in condition.args]
    if sides[0] is None or sides[1] is None:
        return ()
    difference = sides[0].minus(sides[1])
    if sorted(difference.counts.values()) != [-1, 1]:
        return ()
    plus = next(alias for alias, count in difference.counts.items() if count == 1)
    minus = next(alias for alias, count in difference.counts.items() if count == -1)
    offset = difference.offset_us
    # plus - minus + offset OP 0; a strict comparison of microseconds is an inclusive one of one less.
    at_most = TimeBound(earlier=minus, later=plus, upper_us=-offset - (condition.function == "lt"))
    at_least = TimeBound(earlier=plus, later=minus, upper_us=offset - (condition.function == "gt"))
    if condition.function in ("lt", "le"):
        return (at_most,)
    if condition.function in ("gt", "ge"):
        return (at_least,)
    return (at_most, at_least)


def slack_us(condition: Expression, timezone: str) -> int:
    """By how much elapsed time may differ from what `condition` says, since it asks the clocks of a zone.

    They are asked by whole days, which with summer time are not all of 24 hours, and by differences of timestamps.
    """
    asking = sum(isinstance(part, Call) and _asks_clocks(part) for part in walk(condition))
    return asking * offset_range_us(timezone) if asking else 0


def _asks_clocks(call: Call) -> bool:
    if call.function == "time_add" and call.type == TIMESTAMP:
        return isinstance(call.args[1], Literal) and abs(call.args[1].value) >= DAY_US
    return call.function == "time_diff" and any(shown_timestamp(arg) is not None for arg in call.args)


def _time_sum(expression: Expression, event_time_by_alias: Mapping[str, Column | None]) -> TimeSum | None:
    if isinstance(expression, Column):
        is_event_time = event_time_by_alias.get(expression.relation) == expression
        return TimeSum({expression.relation: 1}, 0) if is_event_time else None
    if isinstance(expression, Literal):
        is_interval = expression.type == INTERVAL and expression.value is not None
        return TimeSum({}, expression.value) if is_interval else None
    if expression.function not in ("time_add", "time_diff"):
        return None
    is_difference = expression.function == "time_diff"
    args = [(shown_timestamp(arg) if is_difference else None) or arg for arg in expression.args]
    first, second = (_time_sum(arg, event_time_by_alias) for arg in args)
    if first is None or second is None:
        return None
    if is_difference:
        return first.minus(second)
    return first.minus(TimeSum({}, -second.offset_us)) if not second.counts else None
