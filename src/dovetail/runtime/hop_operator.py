"""One hop in one partition: new rows (hop 1) or partial results (later hops) probe the stores (M1)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dovetail.kernels.evaluate.work_limit import work_limit
from dovetail.kernels.ready_kernels import ready_kernels
from dovetail.lowering.lower_plan import flat_plan
from dovetail.plan.probe_tree import Emit
from dovetail.runtime.answer_files import AnswerFiles
from dovetail.runtime.batch_task import BatchTask, MergeTask
from dovetail.runtime.emit_rows import emit_rows
from dovetail.runtime.factorized.factorized_operator import FactorizedOperator
from dovetail.runtime.groups.folder import GroupFolder
from dovetail.runtime.groups.group_operator import GroupStage
from dovetail.runtime.groups.store import merge_groups
from dovetail.runtime.message import Kind, Message, void_messages
from dovetail.runtime.probe.frame import Frame
from dovetail.runtime.probe.hop_probe import HopProbe
from dovetail.runtime.probe.lone_row_operator import LoneRowOperator
from dovetail.runtime.probe.open_stores import open_stores
from dovetail.runtime.probe.probe_operator import ProbeOperator
from dovetail.runtime.probe.rows_in_flight import OutgoingRows, concat_rows, unpack_rows
from dovetail.runtime.report import STATISTICS, MergedBuckets, TaskReport, UnitWork
from dovetail.runtime.result_sink import ResultSink
from dovetail.runtime.source.merge_operator import run_merge
from dovetail.runtime.source.sample_joins import sample_joins
from dovetail.runtime.source.store_writer import PIECES_PER_SPLIT
from dovetail.runtime.watermarks import watermarks_after
from dovetail.store.bucket_file import BucketMeta

I64 = npt.NDArray[np.int64]


def run_hop(task: BatchTask, partition: int, hop: int, messages: Iterable[Message]) -> Iterator[Message]:
    """Reports and bucket records pass through, so that the last hop hands the driver everything."""
    with work_limit(task.limits.longest_ms):
        yield from _run_hop(task, partition, hop, messages)


def _run_hop(task: BatchTask, partition: int, hop: int, messages: Iterable[Message]) -> Iterator[Message]:
    ready_kernels()
    began = time.perf_counter()
    current: list[BucketMeta] = []
    void: set[str] = set()
    is_last = hop == task.plan.hop_count and bool(task.plan.groups)
    received: dict[Kind, list[bytes]] = {Kind.PARTIAL: [], Kind.GROUPS: [], Kind.TIMES: []}
    for message in messages:
        if message.kind is Kind.PARTIAL or (is_last and message.kind in received):
            received[message.kind].append(message.payload)
        else:
            yield message
            if message.kind is Kind.BUCKET:
                current.append(BucketMeta.from_json(json.loads(message.payload)))
            elif message.kind is Kind.TIMES:
                received[Kind.TIMES].append(message.payload)
            elif message.kind is Kind.VOID:
                void.update(json.loads(message.payload))
    worker = _Hop(task, partition, hop, current)
    worker.report.leave_out(void)
    if hop == 1:
        worker.probe_new_rows()
        worker.answer_lone_rows(received[Kind.TIMES])
        worker.merge()
        worker.sample_joins()
    elif is_last:
        worker.groups.run(received[Kind.GROUPS], received[Kind.TIMES])
    else:
        worker.probe_partials(received[Kind.PARTIAL])
    yield from worker.sent()
    yield from void_messages(worker.report.void_queries - void, task.plan.placement.partition_count)
    for meta in worker.close():
        yield Message(0, Kind.STORED, json.dumps(meta.to_json()).encode())
    worker.work.seconds = worker.report.seconds_by_part[f"hop {hop}"] = time.perf_counter() - began
    yield Message(0, Kind.REPORT, worker.report.to_bytes())


class _Hop:
    def __init__(self, task: BatchTask, partition: int, hop: int, current: list[BucketMeta]) -> None:
        self._task = task
        self._partition = partition
        self._hop = hop
        self._root = Path(task.root)
        flat = flat_plan(task.plan)
        self._outgoing = OutgoingRows(task.plan, flat, hop)
        self.work = UnitWork(partition, hop)
        self.report = TaskReport(work=[self.work])
        opened = open_stores(self._root, task.plan.stores, task.buckets, current, task.timezone)
        self._snapshots = opened.snapshots
        # No two tasks of a batch may use the same split of a store.
        first_split = (hop * task.plan.placement.partition_count + partition) * PIECES_PER_SPLIT
        self._answers = AnswerFiles(task, partition)
        self._sink = ResultSink(task, first_split, self._snapshots, self.report, self._answers)
        self._folder = GroupFolder(task, self._snapshots, self.report)
        self._table_by_id = {table.id: table for group in task.plan.groups for table in group.tables}
        self._group_ids = {group.id for group in task.plan.groups}
        self.groups = GroupStage(task, partition, first_split, self.report, self._answers)
        fold = FactorizedOperator(task, self._snapshots, self._folder, self.report, self.work)
        self._alone = ProbeOperator(task, self._snapshots, self._take, self.report, self.work, fold=fold)
        self._probe: HopProbe | None = None
        if hop <= len(flat.hops):
            self._probe = HopProbe(
                task, opened, flat, self.report, self.work, self._take, self._outgoing.add, self._alone
            )

    def _take(self, emit: Emit, frame: Frame) -> None:
        """Rows that are whole: answers, rows of an intermediate, or of groups."""
        (self._folder if emit.into in self._group_ids else self._sink).add(emit, frame)

    def probe_new_rows(self) -> None:
        """The batch's own rows, and stored rows that act as new ones: those of the batch's chunk of each fill."""
        for tree in self._task.plan.trees:
            snapshot = self._snapshots[tree.start]
            emit_rows(self._task, tree, snapshot, self._partition, self._alone, self.report, self._take)
        if self._probe is not None:
            self._probe.probe_new_rows(self._chunks())

    def _chunks(self) -> dict[str, list[tuple[int, int, int]]]:
        """By the store that is filled: a bucket of the driver, and which of its rows."""
        driver_by_store = {fill.store: fill.driver for fill in self._task.plan.fills}
        found: dict[str, list[tuple[int, int, int]]] = {}
        for chunk in self._task.fill_chunks:
            metas = self._snapshots[driver_by_store[chunk.store]].metas
            ordinal_by_path = {meta.path: ordinal for ordinal, meta in enumerate(metas)}
            found[chunk.store] = [(ordinal_by_path[part.path], part.lower_row, part.upper_row) for part in chunk.parts]
        return found

    def probe_partials(self, payloads: list[bytes]) -> None:
        if payloads and self._probe is not None:
            epoch = self._task.plan.epoch
            self._probe.probe_rows(concat_rows([unpack_rows(payload, epoch) for payload in payloads]))

    def answer_lone_rows(self, times: Iterable[bytes]) -> None:
        """Rows that are answered for what partners they have."""
        plan = self._task.plan
        if plan.lone_rows or plan.matched_rows:
            watermarks = watermarks_after(self._task, times)
            LoneRowOperator(self._task, self._snapshots, self._take, self.report, self.work, watermarks).answer()

    def merge(self) -> None:
        for merge in self._task.merges:
            if merge.partition == self._partition:
                self.report.merges.append(self._merged(merge))

    def _merged(self, merge: MergeTask) -> MergedBuckets:
        table = self._table_by_id.get(merge.store)
        if table is not None:
            return merge_groups(self._root, merge, table)
        return run_merge(self._root, merge, self._snapshots[merge.store].store.event_time)

    def sample_joins(self) -> None:
        with self.report.timed(STATISTICS):
            self.report.samples += sample_joins(self._task, self._partition, self._snapshots)

    def sent(self) -> list[Message]:
        """Everything that goes on to the next hop, or to the last."""
        return [*self._outgoing.close(), *self._folder.close()]

    def close(self) -> list[BucketMeta]:
        """Write what still waits; the buckets of intermediates and groups."""
        self._sink.close()
        self._answers.close(self.report)
        return [*self._sink.stored, *self.groups.written]
