"""A batch whose tasks have ended, as those see it who learn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from dovetail.engine.observe.time_spread import TimeSpread
from dovetail.engine.state import EngineState
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import StorePlan
from dovetail.query.stream import Stream
from dovetail.runtime.report import TaskReport
from dovetail.store.bucket_file import BucketMeta, by_store


@dataclass(frozen=True)
class FinishedBatch:
    """A finished batch: the state it began with, the one it left, and what its tasks told."""

    before: EngineState
    after: EngineState
    plan: SharedPlan
    streams: Mapping[str, Stream]
    report: TaskReport
    written: tuple[BucketMeta, ...]

    @cached_property
    def earlier_by_store(self) -> dict[str, list[BucketMeta]]:
        return by_store(self.before.buckets)

    @cached_property
    def written_by_store(self) -> dict[str, list[BucketMeta]]:
        return by_store(self.written)

    @cached_property
    def spread_by_stores(self) -> dict[tuple[str, bool], TimeSpread]:
        """By store and whether the batch's own buckets are among them; filled as it is asked for."""
        return {}

    def spread(self, store: str, *, is_up_to_now: bool, first_batch: int) -> TimeSpread:
        """The buckets of `store` that a probe sees; those from before `first_batch` it does not."""
        metas = self.visible(store, is_up_to_now=is_up_to_now)
        if any(meta.lower_batch < first_batch for meta in metas):
            return TimeSpread.of(meta for meta in metas if meta.lower_batch >= first_batch)
        known = self.spread_by_stores.get((store, is_up_to_now))
        if known is None:
            known = self.spread_by_stores[store, is_up_to_now] = TimeSpread.of(metas)
        return known

    def visible(self, store: str, *, is_up_to_now: bool) -> list[BucketMeta]:
        earlier = self.earlier_by_store.get(store, [])
        return earlier + self.written_by_store.get(store, []) if is_up_to_now else earlier

    @cached_property
    def written_spread_by_store(self) -> dict[str, TimeSpread]:
        return {store: TimeSpread.of(metas) for store, metas in self.written_by_store.items()}

    def of_streams(self) -> list[StorePlan]:
        """The stores that hold rows of one stream, as they came or by window."""
        return [store for store in self.plan.stores if store.stream in self.streams]
