"""All time bounds that a query's bounds imply: shortest paths over its relations.

`b - a <= 5` and `c - b <= 3` give `c - a <= 8`. The closure says how far two members of a result can be
apart even where the query does not compare them, so that every store can expire and every hop can prune.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.query.join_query import TimeBound

UpperByPair = dict[tuple[str, str], int]
"""(earlier, later) -> largest later.time - earlier.time in microseconds; absent means unbounded."""


def close_time_bounds(aliases: Iterable[str], bounds: Iterable[TimeBound]) -> UpperByPair:
    """The tightest implied bound of every ordered pair that has one.

    >>> closed = close_time_bounds("abc", [TimeBound("a", "b", 5), TimeBound("b", "c", 3)])
    >>> closed[("a", "c")], ("c", "a") in closed
    (8, False)
    """
    names = list(aliases)
    closed: UpperByPair = {}
    for bound in bounds:
        pair = (bound.earlier, bound.later)
        closed[pair] = min(bound.upper_us, closed.get(pair, bound.upper_us))
    for via in names:
        for earlier in names:
            for later in names:
                if len({via, earlier, later}) < 3:
                    continue
                first, second = closed.get((earlier, via)), closed.get((via, later))
                if first is None or second is None:
                    continue
                through = first + second
                closed[(earlier, later)] = min(through, closed.get((earlier, later), through))
    return closed
