"""Says by which window the groups of a query close, and refuses windows that never would."""

from __future__ import annotations

from dataclasses import replace

from dovetail.core.errors import UnsupportedSql
from dovetail.frontend.bind.names import Scope
from dovetail.query.aggregation import Aggregation
from dovetail.query.closing import uppers_from
from dovetail.query.expression import Column
from dovetail.query.join_query import WINDOW_START, JoinQuery


def with_closing_window(query: JoinQuery, scope: Scope, where: str, *, is_distinct: bool) -> JoinQuery:
    """The query with the position of its window key. DISTINCT needs no closing: a row is answered when it is found."""
    aggregation = query.aggregation
    if aggregation is None:
        return query
    if aggregation.window is not None:
        _check_closes(query, aggregation.window.time.relation, where)
        return query
    starts = _window_starts(aggregation, scope)
    padded = query.padded_aliases
    usable = {key: alias for key, alias in starts.items() if alias is not None and alias not in padded}
    closing = [key for key, alias in usable.items() if not _unbounded(query, alias)]
    if closing:
        return replace(query, aggregation=replace(aggregation, window_key=closing[0]))
    if is_distinct or not starts:
        return query
    for alias in starts.values():
        if alias in padded:
            raise UnsupportedSql(
                f"GROUP BY a window of {alias}, which is NULL where an outer join finds no partner, so it never closes",
                where=where,
                hint="group by a window of the other relation",
            )
        if alias is not None:
            _check_closes(query, alias, where)
    raise UnsupportedSql(
        "GROUP BY a window that never closes",
        where=where,
        hint="make the derived table's window over the event time of its stream",
    )


def _window_starts(aggregation: Aggregation, scope: Scope) -> dict[int, str | None]:
    """Keys that are windows of derived tables: their relation, None where the window is not over an event time."""
    relations = {relation.alias: relation for relation in scope.relations}
    found: dict[int, str | None] = {}
    for position, key in enumerate(aggregation.keys):
        if isinstance(key, Column) and key.name == WINDOW_START:
            relation = relations[key.relation]
            window = relation.hop_window
            is_closing = window is not None and window.time_column == relation.stream.event_time
            found[position] = key.relation if is_closing else None
    return found


def _unbounded(query: JoinQuery, alias: str) -> list[str]:
    return [other for other, upper_us in uppers_from(query, alias).items() if upper_us is None]


def _check_closes(query: JoinQuery, alias: str, where: str) -> None:
    unbounded = _unbounded(query, alias)
    if unbounded:
        other = unbounded[0]
        raise UnsupportedSql(
            f"GROUP BY a window of {alias} that never closes: no time condition says how much later {other} may come",
            where=where,
            hint=f"add one, such as {other}.ts <= {alias}.ts + INTERVAL 10 SECONDS, or WITHIN 10 SECONDS",
        )
