"""Which queries take more storage than they may. A query's own is what it added to what those before it needed, as far
as it would go if the query went: so nobody is charged for what others keep, want alike, or left behind.

    first q1: all rows for 10 s       10 s of everything, its own
    then q2: 1% of them for 600 s     590 s of everything more, its own: whole buckets live and die together
    then q3: the same as q2           nothing; and now q2 has nothing of its own but what q3 would not keep, too
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dovetail.core.errors import LimitExceeded
from dovetail.engine.admission.kept_volume import Upkeep, upkeep_by_store
from dovetail.engine.admission.query_estimate import byte_count_text
from dovetail.engine.state import EngineState
from dovetail.optimizer.intermediates.kept import KeptIntermediate
from dovetail.plan.group_plan import GroupPlan
from dovetail.plan.live_query import LiveQuery
from dovetail.query.expression import TRUE, Expression
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.selection_sample import UnionRows
from dovetail.store.bucket_file import BucketMeta, by_store


@dataclass(frozen=True)
class StorageLimit:
    """`max_bytes` for each of the queries that a batch ran; `kept` are the joins that are stored for them.

    The rows that are joined for `groups` are their users'; what several of them share is nobody's own.
    """

    max_bytes: float
    queries: tuple[LiveQuery, ...]
    kept: tuple[KeptIntermediate, ...]
    streams: Mapping[str, Stream]
    stats: StatsCatalog
    groups: tuple[GroupPlan, ...] = ()

    def passed(self, state: EngineState) -> dict[str, str]:
        """The error of every query that takes more, by query."""
        return {
            query: str(_error(size, self.max_bytes, state.batch))
            for query, size in self.own_bytes(state.buckets).items()
            if size > self.max_bytes
        }

    def own_bytes(self, buckets: Sequence[BucketMeta]) -> Counter[str]:
        """By query the bytes that are its own; exact where they could be above the limit."""
        if sum(meta.size_bytes for meta in buckets) <= self.max_bytes:
            return Counter()
        metas_by_store = by_store(buckets)
        sizes = {store: sum(meta.size_bytes for meta in metas) for store, metas in metas_by_store.items()}
        size_by_store = Counter(sizes)
        own = self._of_kept_joins(size_by_store)
        self._add_rows(own, metas_by_store)
        self._give_to_users_of_groups(own, size_by_store)
        return own

    def _of_kept_joins(self, size_by_store: Counter[str]) -> Counter[str]:
        """A join that is kept for one query alone is its own."""
        own: Counter[str] = Counter()
        for each in self.kept:
            users = {use.query for use in each.uses}
            if len(users) == 1:
                own[users.pop()] += size_by_store[each.intermediate.id]
        return own

    def _add_rows(self, own: Counter[str], metas_by_store: Mapping[str, list[BucketMeta]]) -> None:
        """Of the rows of streams, what each query added; where that is too much, what would go with it."""
        upkeep = upkeep_by_store(self.queries, self.streams)
        held = {store: _Held.of(metas_by_store.get(store, []), wanted) for store, wanted in upkeep.items()}
        added = {store: self._added_by_arrival(store, upkeep[store], held[store]) for store in upkeep}
        for live in self.queries:
            sizes = {store: size[live.id] for store, size in added.items() if live.id in size}
            if own[live.id] + sum(sizes.values()) > self.max_bytes:
                left = {store: self._left_without(live.id, store, upkeep[store], held[store]) for store in sizes}
                sizes = {store: min(size, held[store].size - left[store]) for store, size in sizes.items()}
            own[live.id] += int(sum(sizes.values()))

    def _give_to_users_of_groups(self, own: Counter[str], size_by_store: Counter[str]) -> None:
        """What is joined and kept for groups that one query alone reads."""
        for group in self.groups:
            joined = own.pop(group.id, 0)
            if len(group.users) == 1:
                own[group.users[0].query] = joined + sum(size_by_store[table.id] for table in group.tables)

    def _added_by_arrival(self, store: str, upkeep: Sequence[Upkeep], held: _Held) -> dict[str, float]:
        """What each query added to what those before it needed."""
        volumes = list(self._volumes(store, upkeep, held.span_s))
        added = dict.fromkeys((each.query for each in upkeep), 0.0)
        for each, before, after in zip(upkeep, [0.0, *volumes], volumes, strict=False):
            added[each.query] += (after - before) / volumes[-1] * held.size if volumes[-1] else 0.0
        return added

    def _left_without(self, query: str, store: str, upkeep: Sequence[Upkeep], held: _Held) -> float:
        """What the others need, too."""
        whole = max(self._volumes(store, upkeep, held.span_s), default=0.0)
        others = [each for each in upkeep if each.query != query]
        left = max(self._volumes(store, others, held.span_s), default=0.0)
        return left / whole * held.size if whole else 0.0

    def _volumes(self, store: str, upkeep: Iterable[Upkeep], span_s: float) -> Iterator[float]:
        """What the first, the first two, the first three ... of the upkeep need together, as row shares times time."""
        union, lifetime_s = UnionRows(), 0.0
        seen: set[Expression] = set()
        for each in upkeep:
            lifetime_s = max(lifetime_s, each.lifetime_s)
            if each.selection not in seen:
                seen.add(each.selection)
                union = union.plus(self.stats.selection_rows(store, each.selection))
            yield union.share * (min(lifetime_s, span_s) if span_s else 1.0)


@dataclass(frozen=True)
class _Held:
    """What a store holds for queries that run: buckets that were written for others, too, are nobody's fault."""

    size: int
    span_s: float

    @staticmethod
    def of(metas: Iterable[BucketMeta], upkeep: Sequence[Upkeep]) -> _Held:
        wanted = {str(each.selection) for each in upkeep}
        keeps_all = any(each.selection == TRUE for each in upkeep)
        own = [meta for meta in metas if (keeps_all if meta.keeps_all else wanted.issuperset(meta.selections))]
        return _Held(sum(meta.size_bytes for meta in own), _span_s(own))


def _span_s(metas: Iterable[BucketMeta]) -> float:
    """The event time that these rows span."""
    times = [(meta.min_time_us, meta.max_time_us) for meta in metas]
    known = [(low, high) for low, high in times if low is not None and high is not None]
    return (max(high for _, high in known) - min(low for low, _ in known)) / 1e6 if known else 0.0


def _error(size: float, limit: float, batch: int) -> LimitExceeded:
    return LimitExceeded(
        f"keeps {byte_count_text(size)} after batch {batch}; limit {byte_count_text(limit)}",
        where="limit max_query_bytes, of what is stored only because of this query",
        hint="shorten its time bounds or select fewer rows, and create it anew (CREATE OR REPLACE, replace=True);"
        " or ask for a higher limit",
    )
