"""What a query needs of a stream: which columns of its rows, and how long a row can still find partners (B5, C5)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial

from dovetail.plan.live_query import LiveQuery
from dovetail.plan.store_plan import Retention
from dovetail.query.expression import Expression, columns_of
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import PRESENT, Relation
from dovetail.query.stream import Stream


def required_columns(live: LiveQuery, relation: Relation, event_time: str | None) -> frozenset[str]:
    """What a stored row must still have when the query probes it; its selection was decided on arrival."""
    return live.derived(("columns", relation.alias, event_time), lambda: _columns(live, relation, event_time))


def _columns(live: LiveQuery, relation: Relation, event_time: str | None) -> frozenset[str]:
    query = live.query
    expressions: list[Expression] = [*query.joined_expressions, *query.residuals, query.where]
    expressions += [side for equality in query.equalities for side in (equality.a_side, equality.b_side)]
    names = {c.name for expression in expressions for c in columns_of(expression) if c.relation == relation.alias}
    if event_time is not None:
        names.add(event_time)
    return frozenset(names - {PRESENT})


def retention_of(uses: Iterable[tuple[LiveQuery, Relation]]) -> Retention:
    """How long a row can find partners: the longest over the queries, per stream that could bring one."""
    keep_us: dict[str, int] = {}
    for live, relation in uses:
        for stream, upper_us in live.derived(("partners", relation.alias), partial(_partners, live, relation)):
            if upper_us is None:
                return Retention(None)
            keep_us[stream] = max(upper_us, keep_us.get(stream, upper_us))
    return Retention(tuple(sorted(keep_us.items())))


def _partners(live: LiveQuery, relation: Relation) -> tuple[tuple[str, int | None], ...]:
    """The streams of the other relations, and how much later than a row of this one their rows may be."""
    partners = tuple(
        (other.stream, live.time_closure.get((relation.alias, other.alias)))
        for other in live.query.relations
        if other.alias != relation.alias
    )
    return (*partners, *_asked_again(live, relation))


def _asked_again(live: LiveQuery, relation: Relation) -> tuple[tuple[str, int | None], ...]:
    """How long a row must stay because rows of the other relation are asked for their partners more than once.

    Rows of `relation` (event time s) are at most U later than their partners (event time t), and these at most V later
    than them: t - V <= s <= t + U. Whoever asks again has t + U at or above the watermark of s's own stream: else no
    new partner would make a semi join ask, and an outer or anti join would have decided the row. So s + U + V, which
    is at least t + U, is at or above that watermark, too: the row may go once it is below.
    """
    query = live.query
    asking = query.lone_aliases if query.kind is not JoinKind.SEMI else (query.relations[0].alias,)
    if not any(alias != relation.alias for alias in asking):
        return ()
    other = query.partner_of(relation.alias)
    upper_us, back_us = query.upper_us(other, relation.alias), query.upper_us(relation.alias, other)
    return ((relation.stream, None if upper_us is None or back_us is None else upper_us + back_us),)


def growing_streams(live: LiveQuery) -> list[str]:
    """The streams whose rows this query needs for ever."""
    uses = [(live, relation) for relation in live.query.relations]
    return sorted({relation.stream for use in uses for relation in use[1:] if not retention_of([use]).is_bounded})


def lifetime_of(retention: Retention, streams: Mapping[str, Stream]) -> float:
    """Seconds of event time until a row can go: its partners' bounds, and how late they may come."""
    if retention.keep_us_by_stream is None:
        return math.inf
    kept_us = (max(keep_us, 0) + streams[stream].lateness_us for stream, keep_us in retention.keep_us_by_stream)
    return max(kept_us, default=0) / 1e6
