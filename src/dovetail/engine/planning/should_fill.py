"""Whether to fill an intermediate from live stores, or to wait until all that is older than itself is dead."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dovetail.engine.state import EngineState
from dovetail.optimizer.intermediates.kept import KeptIntermediate
from dovetail.optimizer.passes.choose_probe_orders import estimated_rows
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog


@dataclass(frozen=True)
class FillCost:
    """What a fill costs and what waiting costs.

    `driver_rows` stored rows probe, `rows_a_batch` of them in each batch, and find `estimated_pairs`. Users wait
    `wait_batches` without it, for ever if one has no time bound; in each of them `saved_rows_a_batch` probes more are
    made than with the intermediate (None: unknown).
    """

    driver_rows: int
    estimated_pairs: float
    rows_a_batch: int
    wait_batches: float
    saved_rows_a_batch: float | None = None

    @property
    def fill_batches(self) -> int:
        return max(math.ceil(self.driver_rows / self.rows_a_batch), 1)


def should_fill(cost: FillCost) -> bool:
    """Fill if that is over sooner than the wait, and takes fewer rows than the wait does where both are known.

    >>> should_fill(FillCost(500, 2000.0, 100, wait_batches=math.inf, saved_rows_a_batch=10.0))
    True
    >>> should_fill(FillCost(500, 2000.0, 100, wait_batches=4))
    False
    """
    if cost.driver_rows == 0:
        return True
    if cost.wait_batches <= cost.fill_batches:
        return False
    if cost.saved_rows_a_batch is None or math.isinf(cost.wait_batches):
        return True
    return cost.driver_rows + cost.estimated_pairs < cost.saved_rows_a_batch * cost.wait_batches


def fill_cost(
    kept: KeptIntermediate,
    maintaining: LiveQuery,
    queries: Mapping[str, LiveQuery],
    streams: Mapping[str, Stream],
    state: EngineState,
    stats: StatsCatalog,
    rows_a_batch: int,
) -> FillCost:
    """From what the statistics know; what they do not know speaks for the fill, which ends for certain."""
    waits = []
    saved: list[float | None] = []
    for use in kept.uses:
        live = queries[use.query]
        for start in use.wanted_starts:
            if start not in use.starts:
                waits += [_wait_batches(live, alias, start, kept, streams, state, stats) for alias in use.aliases]
                rows = stats.batch_rows(live.query.relation(start).stream)
                saved.append(None if rows is None else rows.value * (len(use.aliases) - 1))
    aliases = [relation.alias for relation in maintaining.query.relations]
    return FillCost(
        driver_rows=min(older_rows(kept, state).values()),
        estimated_pairs=estimated_rows(maintaining.query, aliases, stats) * len(aliases),
        rows_a_batch=rows_a_batch,
        wait_batches=max(waits, default=0.0),
        saved_rows_a_batch=_sum_if_known(saved),
    )


def older_rows(kept: KeptIntermediate, state: EngineState) -> dict[str, int]:
    """By member stream, the live rows that came before this batch and that the intermediate may join."""
    return {
        stream: sum(
            meta.home_rows for meta in state.buckets if meta.store == stream and meta.lower_batch >= kept.complete_from
        )
        for stream in kept.intermediate.streams
    }


def _wait_batches(
    live: LiveQuery,
    member: str,
    start: str,
    kept: KeptIntermediate,
    streams: Mapping[str, Stream],
    state: EngineState,
    stats: StatsCatalog,
) -> float:
    """How many batches until no older row of `member` can meet a new row of `start`."""
    keep_us = live.time_closure.get((member, start))
    if keep_us is None:
        return math.inf
    stream = live.query.relation(member).stream
    times = [
        meta.max_time_us
        for meta in state.buckets
        if meta.store == stream and meta.lower_batch >= kept.complete_from and meta.max_time_us is not None
    ]
    if not times:
        return 0.0
    start_stream = live.query.relation(start).stream
    watermark_us = state.watermark_us_by_stream(streams).get(start_stream)
    rows, rows_per_s = stats.batch_rows(start_stream), stats.rows_per_s(start_stream)
    if watermark_us is None or rows is None or rows_per_s is None or not rows.value:
        return math.inf
    return max(max(times) + keep_us - watermark_us, 0) / 1e6 * rows_per_s.value / rows.value


def _sum_if_known(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
