"""What the driver tells every task of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dovetail.core.sync import Syncing
from dovetail.plan.fill import FillChunk
from dovetail.plan.query_limits import BatchLimits
from dovetail.plan.sampled_join import SampledJoin
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream
from dovetail.store.bad_rows import BadFile
from dovetail.store.bucket_file import BucketMeta

BATCH = "#batch"
"""The column that tells in which batch a row of the past arrived; no SQL text can name it."""


@dataclass(frozen=True)
class MergeTask:
    """Buckets of one store, neighbours in batch order, to be rewritten as one by `partition`."""

    store: str
    buckets: tuple[BucketMeta, ...]
    partition: int


@dataclass(frozen=True)
class BatchTask:
    """A batch is a pure function of this record and the batch's rows. Streams are in the order of their tags.

    Answers of a query that have `own_file_bytes` at once get a file of their own.
    `is_small` is a guess from the batch before: one task does all of it. A wrong guess costs time, nothing else.
    Rows of the past, of several batches, tell theirs in the column `BATCH`: they are late by `late_before_us_by_batch`
    (batch, stream, time) and not by the bounds of the task's own batch; and bad by `last_time_us_by_batch`.
    Rows past `last_time_us` are bad; of those `bad_row_room` says how many may still be kept aside, by stream.
    `retried` are bad rows that the batch takes again, with the number of the batch in which they do so.
    `sampled_joins` add to the reports and to nothing else. `fill_chunks` say how far the plan's fills go on.
    `decided_before_us` are the watermarks by which the batch before decided rows of outer and anti joins.
    `closed_us` says of aggregations up to which time their windows are closed and answered.
    `syncing`: how far what a task writes is on its way to the disk before it reports.
    `samples_key_groups`: tell into which key groups some of the rows fall.
    A task stops a query that passes one of the `limits` in it alone; those for all tasks together are the driver's.
    """

    root: str
    batch: int
    plan: SharedPlan
    streams: tuple[Stream, ...]
    buckets: tuple[BucketMeta, ...]
    late_before_us: tuple[tuple[str, int], ...]
    merges: tuple[MergeTask, ...]
    timezone: str
    max_pairs: int = 4_000_000
    piece_bytes: int = 256 << 20
    own_file_bytes: int = 4 << 20
    is_small: bool = False
    sampled_joins: tuple[SampledJoin, ...] = ()
    fill_chunks: tuple[FillChunk, ...] = ()
    limits: BatchLimits = field(default_factory=BatchLimits)
    decided_before_us: tuple[tuple[str, int], ...] = ()
    late_before_us_by_batch: tuple[tuple[int, str, int], ...] | None = None
    closed_us: tuple[tuple[str, int], ...] = ()
    samples_key_groups: bool = False
    syncing: Syncing = Syncing.NOT
    last_time_us: tuple[tuple[str, int], ...] = ()
    last_time_us_by_batch: tuple[tuple[int, str, int], ...] | None = None
    bad_row_room: tuple[tuple[str, int], ...] = ()
    retried: tuple[tuple[BadFile, int], ...] = ()

    def in_one_partition(self) -> BatchTask:
        """The same for one task that does everything: steps, messages and files are as many as for one partition."""
        plan = self.plan.in_one_partition
        if plan is self.plan:
            return self
        return replace(self, plan=plan, merges=tuple(replace(merge, partition=0) for merge in self.merges))
