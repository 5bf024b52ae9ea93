"""What an aggregation keeps for ever, in words: groups without a window never go."""

from __future__ import annotations

from dovetail.query.aggregation import AggregateFunction
from dovetail.query.join_query import JoinQuery


def growing_groups(query: JoinQuery) -> tuple[str, ...]:
    """Each is kept once per value that was ever seen; empty when the state of the query's groups is bounded."""
    aggregation = query.aggregation
    if aggregation is None or aggregation.is_windowed:
        return ()
    growing = [f"groups by {', '.join(map(str, aggregation.keys))}"] if aggregation.keys else []
    growing += [
        f"distinct values of {', '.join(map(str, aggregate.arguments))}"
        for aggregate in aggregation.aggregates
        if aggregate.function is AggregateFunction.COUNT_DISTINCT
    ]
    return tuple(growing)
