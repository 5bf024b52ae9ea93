"""Joins that planning needs to know of and that no hop of the running plan counts by itself."""

from __future__ import annotations

from dovetail.engine.once_per import OncePer
from dovetail.optimizer.passes.choose_probe_orders import edge_of
from dovetail.plan.live_query import LiveQuery, as_row, store_of
from dovetail.plan.sampled_join import SampledJoin
from dovetail.plan.store_plan import IndexPlan
from dovetail.query.join_query import Equality
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.figure import Figure, Kind

SMALLEST = 3
"""A join of two is counted by its own steps, and no plan depends on it."""


def choose_samples(queries: tuple[LiveQuery, ...], stats: StatsCatalog) -> tuple[SampledJoin, ...]:
    """By edge, the first query's; edges whose rows some step counts pair by pair need none."""
    joins: dict[str, SampledJoin] = {}
    for edge, asked in _asked_by_edge.of(queries).items():
        if edge not in stats.key_match and not stats.observed.is_fresh(Figure(Kind.MATCH, (edge,))):
            sampled = next(filter(None, (_sampled(live, equality, edge) for live, equality in asked)), None)
            if sampled is not None:
                joins[edge] = sampled
    return tuple(joins[edge] for edge in sorted(joins))


def _collect(queries: tuple[LiveQuery, ...]) -> dict[str, list[tuple[LiveQuery, Equality]]]:
    """Who asks for which edge."""
    asked: dict[str, list[tuple[LiveQuery, Equality]]] = {}
    for live in queries:
        if len(live.query.relations) >= SMALLEST:
            for equality in live.query.equalities:
                asked.setdefault(edge_of(live.query, equality), []).append((live, equality))
    return asked


_asked_by_edge = OncePer(_collect)


def _sampled(live: LiveQuery, equality: Equality, edge: str) -> SampledJoin | None:
    """None if the query's time bounds contradict each other: nothing meets, and that tells nothing of the keys."""
    a, b = (live.query.relation(alias) for alias in sorted(equality.aliases))
    upper_us = live.time_closure.get((a.alias, b.alias))
    back_us = live.time_closure.get((b.alias, a.alias))
    if upper_us is not None and back_us is not None and upper_us + back_us < 0:
        return None
    return SampledJoin(
        edge,
        store_of(a),
        IndexPlan((as_row(equality.side_of(a.alias), a.alias),)),
        store_of(b),
        IndexPlan((as_row(equality.side_of(b.alias), b.alias),)),
        lower_us=None if back_us is None else -back_us,
        upper_us=upper_us,
    )
