"""When a window of an aggregation is closed: no row that still comes can add to one of its groups.

A joined row lies in a window by the event time t of one relation r, start <= t < end. Its member of relation x is at
most U(r, x) later, by the closure of the query's time bounds, and rows of x before x's watermark do not come any
more. So the window is closed once  end <= watermark(x) - U(r, x)  for every relation x, with U(r, r) = 0.

`Pane.closed_until` of the plan closes windows by it.
"""

from __future__ import annotations

from dovetail.query.join_query import JoinQuery
from dovetail.query.time_closure import close_time_bounds


def uppers_from(query: JoinQuery, alias: str) -> dict[str, int | None]:
    """By relation, how much later in microseconds its member can be than that of `alias`; None: without bound."""
    aliases = [relation.alias for relation in query.relations]
    closed = close_time_bounds(aliases, query.time_bounds)
    return {other: 0 if other == alias else closed.get((alias, other)) for other in aliases}
