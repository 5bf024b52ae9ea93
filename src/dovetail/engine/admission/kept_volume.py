"""What queries want a store to keep: which rows, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dovetail.plan.live_query import LiveQuery, as_row, store_of
from dovetail.plan.needs import lifetime_of, retention_of
from dovetail.query.expression import Expression
from dovetail.query.stream import Stream


@dataclass(frozen=True)
class Upkeep:
    """A query wants the rows that pass `selection`, for `lifetime_s` of event time."""

    query: str
    selection: Expression
    lifetime_s: float


def upkeep_by_store(queries: Iterable[LiveQuery], streams: Mapping[str, Stream]) -> dict[str, list[Upkeep]]:
    found: dict[str, list[Upkeep]] = {}
    for live in queries:
        for relation in live.query.relations:
            lifetime_s = lifetime_of(retention_of([(live, relation)]), streams)
            each = Upkeep(live.id, as_row(relation.selection, relation.alias), lifetime_s)
            found.setdefault(store_of(relation), []).append(each)
    return found
