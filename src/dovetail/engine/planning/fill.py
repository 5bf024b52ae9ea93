"""How far an intermediate's fill is, and its next chunk: plain values, committed with the batch like all state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dovetail.engine.control.coverage import StoreHistory
from dovetail.plan.fill import ChunkPart, FillChunk, FillSource, filled_by
from dovetail.store.bucket_file import BucketMeta


@dataclass(frozen=True)
class Fill:
    """A fill that is under way: stored rows of `driver` from before `before_batch`, the newest bucket first.

    So old buckets have time to die unread. `position` is the bucket that was read last, by (lower batch, split),
    and how many of its rows are done.
    """

    driver: str
    before_batch: int
    position: tuple[int, int, int] | None = None

    @property
    def source(self) -> FillSource:
        return FillSource(self.driver, self.before_batch)

    def to_json(self) -> list[Any]:
        return [self.driver, self.before_batch, self.position]

    @staticmethod
    def from_json(record: list[Any]) -> Fill:
        driver, before_batch, position = record
        return Fill(driver, before_batch, None if position is None else (position[0], position[1], position[2]))

    def remaining(self, since: int, buckets: Iterable[BucketMeta]) -> list[ChunkPart]:
        """What of the driver's live rows since batch `since` is still to be joined, in that order."""
        parts = []
        for meta in sorted(buckets, key=_place, reverse=True):
            if meta.store != self.driver or meta.lower_batch < since or meta.upper_batch >= self.before_batch:
                continue
            if self.position is None or _place(meta) < self.position[:2]:
                parts.append(ChunkPart(meta.key, 0, meta.rows))
            elif _place(meta) == self.position[:2] and self.position[2] < meta.rows:
                parts.append(ChunkPart(meta.key, self.position[2], meta.rows))
        return parts

    def advanced(self, chunk: FillChunk, buckets: Iterable[BucketMeta]) -> Fill:
        """The fill once `chunk` is done."""
        if not chunk.parts:
            return self
        last = chunk.parts[-1]
        meta = next(meta for meta in buckets if meta.key == last.bucket)
        return replace(self, position=(*_place(meta), last.upper_row))


def choose_chunks(
    fills: Mapping[str, Fill], kept_from: Mapping[str, int], buckets: tuple[BucketMeta, ...], budget_rows: int
) -> tuple[FillChunk, ...]:
    """The next chunk of each fill, together not more than `budget_rows` of the drivers' rows."""
    chunks = []
    for store, fill in fills.items():
        parts = []
        for part in fill.remaining(kept_from[store], buckets):
            if budget_rows == 0:
                break
            taken = min(part.rows, budget_rows)
            parts.append(ChunkPart(part.bucket, part.lower_row, part.lower_row + taken))
            budget_rows -= taken
        chunks.append(FillChunk(store, tuple(parts)))
    return tuple(chunks)


def advance_fills(
    fills: Mapping[str, Fill],
    chunks: Iterable[FillChunk],
    kept_from: Mapping[str, int],
    buckets_before: tuple[BucketMeta, ...],
    buckets_after: tuple[BucketMeta, ...],
    histories: Mapping[str, StoreHistory],
    failed: Iterable[str],
) -> tuple[dict[str, Fill], dict[str, StoreHistory]]:
    """The fills after a batch that joined `chunks`; a store whose fill is over holds all since its `kept_from`.

    Rows that expired meanwhile are dead for every user, so nobody misses their joins.
    """
    chunk_by_store = {chunk.store: chunk for chunk in chunks}
    under_way: dict[str, Fill] = {}
    known = dict(histories)
    for store, fill in fills.items():
        if filled_by(store) in failed or store not in known:
            continue
        advanced = fill.advanced(chunk_by_store[store], buckets_before)
        if advanced.remaining(kept_from[store], buckets_after):
            under_way[store] = advanced
        else:
            known[store] = known[store].with_filled(kept_from[store])
    return under_way, known


def _place(meta: BucketMeta) -> tuple[int, int]:
    return meta.lower_batch, meta.split
