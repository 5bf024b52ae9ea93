"""Which starts may probe an intermediate yet (C1, C6).

An intermediate holds the pairs that were formed since it exists; after a fill also those of older rows. A start changes
over to it once everything that is not in it is dead for the start, so no answer is lost or doubled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.engine.control.coverage import StoreHistory, complete_from, kept_since, not_inside_a_bucket
from dovetail.engine.state import EngineState
from dovetail.optimizer.intermediates.collapse import StandIn, collapse
from dovetail.optimizer.intermediates.kept import KeptIntermediate, Use
from dovetail.optimizer.intermediates.maintaining_query import maintaining_query
from dovetail.plan.intermediate import Intermediate
from dovetail.plan.live_query import LiveQuery, store_of
from dovetail.plan.store_plan import Retention
from dovetail.query.stream import Stream


def settle_intermediates(
    wanted: tuple[KeptIntermediate, ...],
    queries: tuple[LiveQuery, ...],
    streams: Mapping[str, Stream],
    state: EngineState,
) -> tuple[KeptIntermediate, ...]:
    """The wanted intermediates as batch `state.batch` keeps and uses them."""
    query_by_id = {live.id: live for live in queries}
    settled = []
    for join in wanted:
        since = state.kept_from.get(join.intermediate.id)
        if since is None:
            maintaining = maintaining_query(join, query_by_id, streams)
            watermarks = state.watermark_us_by_stream(streams)
            since = complete_from(
                maintaining,
                state.batch,
                streams,
                state.histories,
                state.buckets,
                watermarks,
                state.first_batch_by_stream,
            )
            # What none of its users may use would only be in their way.
            since = max(since, min(query_by_id[use.query].complete_from for use in join.uses))
        kept = replace(join, complete_from=since)
        uses = tuple(_settled(use, query_by_id[use.query], kept, streams, state) for use in kept.uses)
        settled.append(replace(kept, uses=uses))
    return tuple(settled)


def kept_for(
    use: Use, live: LiveQuery, intermediate: Intermediate, streams: Mapping[str, Stream], state: EngineState
) -> int:
    """The first batch from which on the store joined all that the user needs of it."""
    user = collapse(live, [StandIn(use.aliases, intermediate)], streams)
    history = state.histories.get(intermediate.id, StoreHistory())
    return kept_since(user, user.query.relation(user.collapsed[0].alias), intermediate.event_time, history, state.batch)


def _settled(
    use: Use, live: LiveQuery, kept: KeptIntermediate, streams: Mapping[str, Stream], state: EngineState
) -> Use:
    since = kept_for(use, live, kept.intermediate, streams, state)
    # A query tells by bucket what it may use: one that it may use only in part is lost to it.
    usable = not_inside_a_bucket(live.complete_from, {kept.intermediate.id}, list(state.buckets))
    # Older rows than these are not in the store, or are in it though the query may not use them.
    lower, upper = min(live.complete_from, kept.complete_from), max(usable, since)
    starts = tuple(
        start
        for start in use.wanted_starts
        if all(_is_dead(live, alias, start, (lower, upper), streams, state) for alias in use.aliases)
    )
    return replace(use, starts=starts)


def _is_dead(
    live: LiveQuery,
    member: str,
    start: str,
    batches: tuple[int, int],
    streams: Mapping[str, Stream],
    state: EngineState,
) -> bool:
    """Whether no row of `member` that arrived in these batches can meet a new row of `start` any more."""
    lower, upper = batches
    keep_us = live.time_closure.get((member, start))
    start_stream = live.query.relation(start).stream
    retention = Retention(None if keep_us is None else ((start_stream, keep_us),))
    store = store_of(live.query.relation(member))
    watermarks = state.watermark_us_by_stream(streams)
    times = [
        meta.max_time_us
        for meta in state.buckets
        if meta.store == store and meta.lower_batch < upper and meta.upper_batch >= lower
    ]
    times += [
        entry.max_time_us
        for entry in state.histories.get(store, StoreHistory()).expired
        if lower <= entry.upper_batch < upper
    ]
    return all(retention.is_dead(time, watermarks) for time in times)
