"""From which batch on a new query's answers are complete (C7).

A store's history says what it kept since when: columns, and rows by selection. A query created now can use the
part of the history that kept all it needs, as far back as nothing that it could still join has expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dovetail.plan.live_query import LiveQuery, as_row, store_of
from dovetail.plan.needs import required_columns, retention_of
from dovetail.plan.store_plan import StorePlan
from dovetail.query.expression import Call, Expression, columns_of
from dovetail.query.join_query import Relation
from dovetail.query.stream import Stream
from dovetail.store.bucket_file import BucketMeta

SEGMENTS_KEPT = 64


@dataclass(frozen=True)
class Segment:
    """From `from_batch` on the store kept these columns of the rows that one of these selections wants."""

    from_batch: int
    columns: tuple[str, ...]
    selections: tuple[str, ...]
    keeps_all: bool

    def keeps(self, store: StorePlan) -> bool:
        return (self.columns, self.selections, self.keeps_all) == _kept(store)


@dataclass(frozen=True)
class Expired:
    """A bucket that is gone: its last batch and its largest event time."""

    upper_batch: int
    max_time_us: int | None


@dataclass(frozen=True)
class StoreHistory:
    """`expired` holds only entries that no later one outdoes in both batch and time: a handful."""

    segments: tuple[Segment, ...] = ()
    expired: tuple[Expired, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return {
            **_segments_json(self.segments),
            "expired": [[entry.upper_batch, entry.max_time_us] for entry in self.expired],
        }

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> StoreHistory:
        selections: list[list[str]] = [[] for _ in record["segments"]]
        for text, runs in record["selections"].items():
            for first, last in runs:
                for number in range(first, last + 1):
                    selections[number].append(text)
        segments = tuple(
            Segment(from_batch, tuple(columns), tuple(sorted(own)), keeps_all)
            for (from_batch, columns, keeps_all), own in zip(record["segments"], selections, strict=True)
        )
        return StoreHistory(segments, tuple(Expired(*entry) for entry in record["expired"]))

    def continued(self, store: StorePlan, batch: int) -> StoreHistory:
        """The history once batch `batch` is written under this plan."""
        if self.segments and self.segments[-1].keeps(store):
            return self
        return StoreHistory((*self.segments, Segment(batch, *_kept(store))), self.expired)

    def since(self, oldest_batch: int) -> StoreHistory:
        """Without old segments of which no row is left: the store holds none from before `oldest_batch`.

        Where queries come and go all the time there is a segment for every batch. A few are kept all the same: a new
        query may then say that it is complete for batches of which nothing can matter any more.
        """
        ended = sum(segment.from_batch <= oldest_batch for segment in self.segments[1:])
        surplus = min(ended, len(self.segments) - SEGMENTS_KEPT)
        return replace(self, segments=self.segments[surplus:]) if surplus > 0 else self

    def with_filled(self, since: int) -> StoreHistory:
        """The history once the joins of rows from before the first segment are in the store, too.

        They were made under all segments so far, so they serve whom all of these serve.
        """
        first, *others = self.segments
        return StoreHistory((replace(first, from_batch=min(since, first.from_batch)), *others), self.expired)

    def with_expired(self, buckets: Iterable[BucketMeta]) -> StoreHistory:
        entries = [*self.expired, *(Expired(meta.upper_batch, meta.max_time_us) for meta in buckets)]
        frontier: list[Expired] = []
        for entry in sorted(entries, key=lambda e: (e.upper_batch, _time(e)), reverse=True):
            if not frontier or _time(entry) > _time(frontier[-1]):
                frontier.append(entry)
        return StoreHistory(self.segments, tuple(reversed(frontier)))


_written: dict[int, tuple[tuple[Segment, ...], dict[str, Any]]] = {}
_MOST_WRITTEN = 256


def _segments_json(segments: tuple[Segment, ...]) -> dict[str, Any]:
    """Segments differ by the few selections that came and went: each text is written once, with its places.

    They are written with every batch, and change when queries come or go.
    """
    known = _written.get(id(segments))
    if known is not None and known[0] is segments:
        return known[1]
    places: dict[str, list[int]] = {}
    for number, segment in enumerate(segments):
        for text in segment.selections:
            places.setdefault(text, []).append(number)
    record = {
        "segments": [[s.from_batch, s.columns, s.keeps_all] for s in segments],
        "selections": {text: _runs(numbers) for text, numbers in places.items()},
    }
    if len(_written) >= _MOST_WRITTEN:
        _written.clear()
    _written[id(segments)] = segments, record
    return record


def _runs(numbers: list[int]) -> list[list[int]]:
    """Ascending numbers as [first, last] of those that follow one another.

    >>> _runs([0, 1, 2, 5])
    [[0, 2], [5, 5]]
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def complete_from(
    live: LiveQuery,
    batch: int,
    streams: Mapping[str, Stream],
    histories: Mapping[str, StoreHistory],
    buckets: Iterable[BucketMeta],
    watermark_us_by_stream: dict[str, int],
    first_batch_by_stream: Mapping[str, int] | None = None,
) -> int:
    """The first batch all of whose rows the query, created at `batch`, can use."""
    since = 0
    for relation in live.query.relations:
        store = store_of(relation)
        history = histories.get(store, StoreHistory())
        kept = kept_since(live, relation, streams[relation.stream].event_time, history, batch)
        # Of a stream that was not there before, nothing is missed.
        if kept > (first_batch_by_stream or {}).get(relation.stream, 0):
            since = max(since, kept)
        retention = retention_of([(live, relation)])
        for entry in history.expired:
            if not retention.is_dead(entry.max_time_us, watermark_us_by_stream):
                since = max(since, entry.upper_batch + 1)
    return not_inside_a_bucket(since, {store_of(relation) for relation in live.query.relations}, list(buckets))


def kept_since(live: LiveQuery, relation: Relation, event_time: str | None, history: StoreHistory, batch: int) -> int:
    """The first batch from which on the store kept all that the query needs of it."""
    selection = as_row(relation.selection, relation.alias)
    needed = required_columns(live, relation, event_time)
    since = batch
    for segment in reversed(history.segments):
        if not (needed <= set(segment.columns) and _has_rows(segment, selection)):
            break
        since = segment.from_batch
    return since


def _has_rows(segment: Segment, selection: Expression) -> bool:
    """Whether the rows that pass are there and can be told from the others."""
    if str(selection) in segment.selections:
        return True
    if not {column.name for column in columns_of(selection)} <= set(segment.columns):
        return False
    if isinstance(selection, Call) and selection.function == "or":
        return segment.keeps_all or all(_has_rows(segment, part) for part in selection.args)
    return segment.keeps_all


def not_inside_a_bucket(since: int, stores: set[str], buckets: list[BucketMeta]) -> int:
    """Rows are told by bucket: a merged one that begins before `since` cannot be used in part."""
    for meta in sorted(buckets, key=lambda meta: meta.lower_batch):
        if meta.store in stores and meta.lower_batch < since <= meta.upper_batch:
            since = meta.upper_batch + 1
    return since


def _kept(store: StorePlan) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    return store.columns, tuple(str(selection) for selection in store.tested_selections), store.keeps_all


def _time(entry: Expired) -> float:
    return float("-inf") if entry.max_time_us is None else entry.max_time_us
