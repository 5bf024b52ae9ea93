"""What a planner decides for all queries together; everything else of a plan follows from it (C2, C1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dovetail.optimizer.intermediates.candidates import intermediates_of, keepable_subsets, starts_of
from dovetail.optimizer.intermediates.kept import KeptIntermediate
from dovetail.optimizer.orders import Orders
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog


@dataclass(frozen=True)
class Decisions:
    """Where `orders` has none the greedy one is taken; `intermediates` name the starts that shall use them.

    `rank_order` has the stores of the lowest ranks: whoever ranks above all members of an intermediate may probe it.
    """

    orders: Orders = field(default_factory=dict)
    intermediates: tuple[KeptIntermediate, ...] = ()
    rank_order: tuple[str, ...] = ()


Decide = Callable[[tuple[LiveQuery, ...], Mapping[str, Stream], StatsCatalog, int], Decisions]
"""What a batch shall run by, from queries, streams, statistics and the batch's number.

Decisions may differ from batch to batch: no answer depends on them, only the cost.
"""


def greedy(
    _queries: tuple[LiveQuery, ...], _streams: Mapping[str, Stream], _stats: StatsCatalog, _batch: int
) -> Decisions:
    """Greedy orders, nothing kept."""
    return Decisions()


def keep_intermediates(
    queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], _stats: StatsCatalog, _batch: int
) -> Decisions:
    """Greedy orders, and every start of every query probes the largest intermediate that it may."""
    chosen: list[tuple[LiveQuery, tuple[str, ...], tuple[str, ...]]] = []
    for live in (live for live in queries if live.may_materialize):
        taken: set[str] = set()
        for aliases in reversed(keepable_subsets(live)):
            starts = tuple(start for start in starts_of(live, aliases) if start not in taken)
            taken |= set(starts)
            if starts:
                chosen.append((live, aliases, starts))
    return Decisions(intermediates=intermediates_of(chosen, streams))
