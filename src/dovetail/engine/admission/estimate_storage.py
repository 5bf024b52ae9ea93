"""What a new query would have stored that nobody keeps yet: more rows, for longer, with more columns and indexes.

store a keeps 10% of a's rows for 10 s; the query wants all of them for 2 s: 90% more, for 10 s
store a keeps all rows for 10 s; the query wants 1% of them for 60 s: 50 s more of all rows,
because whole buckets live and die together
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dovetail.plan.needs import lifetime_of
from dovetail.plan.store_plan import StorePlan
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.estimate import Estimate, Origin, product
from dovetail.store.bucket_file import BucketMeta

INDEX_ENTRY_BYTES = 12
SELECTION_WORD_BYTES = 8
ASSUMED_STRING_BYTES = 20
WIDTH_ERROR = 0.25
"""Of a row's size by its types: files have headers, and arrays are padded."""
INDEPENDENCE_ERROR = 0.5
"""Of a union of selections that are taken as independent."""
_BYTES_BY_TYPE = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "float": 4,
    "date": 4,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
    "decimal": 16,
    "window": 16,
}


@dataclass(frozen=True)
class StoreWorld:
    """What is known where a query comes in: the stores that are kept, and the data."""

    kept_by_id: Mapping[str, StorePlan]
    buckets: tuple[BucketMeta, ...]
    stats: StatsCatalog
    streams: Mapping[str, Stream]


@dataclass(frozen=True)
class Added:
    rows: Estimate
    size: Estimate


def added_storage(wanted: Iterable[StorePlan], world: StoreWorld) -> tuple[Estimate | None, Estimate | None]:
    """Rows and bytes over all stores that the query wants for itself, without those it would keep for ever."""
    found = []
    for store in wanted:
        if store.retention.is_bounded:
            added = _added(store, world)
            if added is None:
                return None, None
            found.append(added)
    return _sum([each.rows for each in found]), _sum([each.size for each in found])


def _added(wanted: StorePlan, world: StoreWorld) -> Added | None:
    lifetime_s = lifetime_of(wanted.retention, world.streams)
    arriving = _rows_per_s(wanted, lifetime_s, world.stats)
    if arriving is None:
        return None
    kept = world.kept_by_id.get(wanted.id)
    width = _width(wanted, world)
    share = world.stats.union_share(wanted.id, wanted.selections)
    if kept is None:
        rows = product([arriving, share, Estimate(lifetime_s, Origin.GIVEN)])
        return Added(rows, product([rows, width]))
    # A store that is kept for ever is as old as its data by now.
    kept_s = min(lifetime_of(kept.retention, world.streams), max(_span_s(kept, world), lifetime_s))
    kept_share = _kept_share(kept, kept_s, arriving, world)
    share = _union(kept, kept_share, wanted, share)
    before = arriving.value * kept_share.value * kept_s
    rows = product([arriving, share, Estimate(max(lifetime_s, kept_s), Origin.GIVEN)])
    kept_width = world.stats.row_bytes(kept.id).value
    size = product([rows, width])
    return Added(_less(rows, before), _less(size, before * kept_width))


def _rows_per_s(wanted: StorePlan, lifetime_s: float, stats: StatsCatalog) -> Estimate | None:
    window = wanted.hop_window
    copies = Estimate(window.size_us / window.slide_us if window else 1.0, Origin.GIVEN)
    counted = stats.rows_per_s(wanted.stream)
    if counted is not None:
        return product([counted, copies])
    given = stats.rows_in_window.get(wanted.stream)
    return None if given is None or not lifetime_s else Estimate(given * copies.value / lifetime_s, Origin.GIVEN)


def _width(wanted: StorePlan, world: StoreWorld) -> Estimate:
    """Of a row once the query is there: as counted where the store is kept, by its types where it is new."""
    types = dict(world.streams[wanted.stream].columns)
    kept = world.kept_by_id.get(wanted.id)
    counted = world.stats.row_bytes(wanted.id)
    columns, indexes = set(wanted.columns), {index.id for index in wanted.indexes}
    base = 0.0 if wanted.keeps_all else float(SELECTION_WORD_BYTES)
    if kept is not None and counted.origin is not Origin.ASSUMED:
        columns -= set(kept.columns)
        indexes -= {index.id for index in kept.indexes}
        base = counted.value
    names = [types[column].name for column in sorted(columns) if column in types]
    value = base + sum(_BYTES_BY_TYPE.get(name, ASSUMED_STRING_BYTES) for name in names)
    value += INDEX_ENTRY_BYTES * len(indexes)
    if any(name not in _BYTES_BY_TYPE for name in names):
        return Estimate(value, Origin.ASSUMED)
    is_counted = not columns and not indexes
    return Estimate(value, Origin.EXACT) if is_counted else Estimate(value, Origin.ESTIMATED, WIDTH_ERROR)


def _kept_share(kept: StorePlan, kept_s: float, arriving: Estimate, world: StoreWorld) -> Estimate:
    """The share of the stream's rows that the store holds, from what it holds: unions of hundreds take too long."""
    if kept.keeps_all:
        return Estimate(1.0, Origin.GIVEN)
    stored = world.stats.stored_rows(kept.id)
    arrived = arriving.value * min(kept_s, _span_s(kept, world))
    if stored is None or not arrived:
        return world.stats.union_share(kept.id, kept.selections)
    return Estimate(min(stored.value / arrived, 1.0), Origin.ESTIMATED, WIDTH_ERROR)


def _union(kept: StorePlan, kept_share: Estimate, wanted: StorePlan, share: Estimate) -> Estimate:
    if kept.keeps_all or wanted.selection_set <= kept.selection_set:
        return kept_share
    if wanted.keeps_all:
        return share
    value = 1 - (1 - kept_share.value) * (1 - share.value)
    is_assumed = Origin.ASSUMED in (kept_share.origin, share.origin)
    return Estimate(value, Origin.ASSUMED) if is_assumed else Estimate(value, Origin.ESTIMATED, INDEPENDENCE_ERROR)


def _span_s(store: StorePlan, world: StoreWorld) -> float:
    """The event time that the store's rows span."""
    own = [meta for meta in world.buckets if meta.store == store.id]
    newest = [meta.max_time_us for meta in own if meta.max_time_us is not None]
    oldest = [meta.min_time_us for meta in own if meta.min_time_us is not None]
    return (max(newest) - min(oldest)) / 1e6 if newest and oldest else 0.0


def _less(whole: Estimate, part: float) -> Estimate:
    return Estimate(max(whole.value - part, 0.0), whole.origin, whole.relative_error)


def _sum(parts: list[Estimate]) -> Estimate:
    """Known as little as the least known of those that are not zero."""
    value = math.fsum(part.value for part in parts)
    counting = [part for part in parts if part.value] or [Estimate(0.0, Origin.GIVEN)]
    weakest = product(counting)
    return Estimate(value, weakest.origin, weakest.relative_error)
