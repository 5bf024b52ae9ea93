"""Intermediates as a batch keeps, uses and fills them (C1, C6, A8).

An intermediate begins empty. Its users wait until all that is older is dead for them, or until a fill has joined what
is older, whichever comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dovetail.engine.planning.fill import Fill
from dovetail.engine.planning.settle_intermediates import kept_for, settle_intermediates
from dovetail.engine.planning.should_fill import FillCost, fill_cost, older_rows, should_fill
from dovetail.engine.state import EngineState
from dovetail.optimizer.intermediates.kept import KeptIntermediate
from dovetail.optimizer.intermediates.maintaining_query import maintaining_query
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog

LEAST_FILL_ROWS = 1_000
"""A batch costs more than so many rows of a fill even if it brings none."""


@dataclass(frozen=True)
class FillPolicy:
    """When to fill, and how many rows a batch may spend on fills; None: as many as it usually brings itself."""

    should_fill: Callable[[FillCost], bool] = should_fill
    rows_a_batch: int | None = None

    def budget_rows(self, stats: StatsCatalog, streams: Mapping[str, Stream]) -> int:
        if self.rows_a_batch is not None:
            return self.rows_a_batch
        usual = [stats.batch_rows(stream) for stream in streams]
        return max(int(sum(estimate.value for estimate in usual if estimate is not None)), LEAST_FILL_ROWS)


def settle_and_fill(
    wanted: tuple[KeptIntermediate, ...],
    queries: tuple[LiveQuery, ...],
    streams: Mapping[str, Stream],
    state: EngineState,
    stats: StatsCatalog,
    policy: FillPolicy,
) -> tuple[KeptIntermediate, ...]:
    """The wanted intermediates as batch `state.batch` has them, with their fills."""
    query_by_id = {live.id: live for live in queries}
    served = tuple(kept for join in wanted if (kept := _without_newcomers(join, query_by_id, streams, state)).uses)
    settled = settle_intermediates(served, queries, streams, state)
    fills: dict[str, Fill] = {}
    for kept in settled:
        if all(use.starts == use.wanted_starts for use in kept.uses):
            continue
        name = kept.intermediate.id
        if name in state.kept_from:
            fill = state.fills.get(name)
        else:
            fill = _begun(kept, query_by_id, streams, state, stats, policy)
        if fill is not None:
            fills[name] = fill
    return tuple(
        replace(kept, fill=fills[kept.intermediate.id].source if kept.intermediate.id in fills else None)
        for kept in settled
    )


def with_intermediates(state: EngineState, kept: tuple[KeptIntermediate, ...]) -> EngineState:
    """The state that knows of settled intermediates and their fills: those under way go on where they are."""
    kept_from = {each.intermediate.id: each.complete_from for each in kept}
    fills = {}
    for each in kept:
        name = each.intermediate.id
        if each.fill is not None:
            known = state.fills.get(name) if name in state.kept_from else None
            fills[name] = known or Fill(each.fill.driver, each.fill.before_batch)
    return replace(state, kept_from=kept_from, fills=fills)


def _without_newcomers(
    join: KeptIntermediate, queries: Mapping[str, LiveQuery], streams: Mapping[str, Stream], state: EngineState
) -> KeptIntermediate:
    """During a fill the store's content stays: who asks for more than it was begun with comes in when it is over.

    If only such users are left the join is not kept in this batch, and begins anew with the next.
    """
    fill = state.fills.get(join.intermediate.id)
    if fill is None:
        return join
    served = tuple(
        use
        for use in join.uses
        if kept_for(use, queries[use.query], join.intermediate, streams, state) <= fill.before_batch
    )
    return replace(join, uses=served)


def _begun(
    kept: KeptIntermediate,
    queries: Mapping[str, LiveQuery],
    streams: Mapping[str, Stream],
    state: EngineState,
    stats: StatsCatalog,
    policy: FillPolicy,
) -> Fill | None:
    """The fill of an intermediate that begins with this batch: the member with fewest rows drives it."""
    if kept.complete_from >= state.batch:
        return None
    maintaining = maintaining_query(kept, queries, streams)
    budget = policy.budget_rows(stats, streams)
    if not policy.should_fill(fill_cost(kept, maintaining, queries, streams, state, stats, budget)):
        return None
    rows = older_rows(kept, state)
    return Fill(min(rows, key=lambda stream: (rows[stream], stream)), state.batch)
