"""Hops in one partition: new rows (hop 1) or partial results (later hops) probe the stores (M1)."""

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
from dovetail.plan.shared_plan import SharedPlan
from dovetail.runtime.answer_files import AnswerFiles
from dovetail.runtime.batch_task import BatchTask, MergeTask
from dovetail.runtime.bucket_files import BucketFiles
from dovetail.runtime.emit_rows import emit_rows
from dovetail.runtime.factorized.factorized_operator import FactorizedOperator
from dovetail.runtime.groups.folder import GroupFolder
from dovetail.runtime.groups.group_operator import GroupStage
from dovetail.runtime.groups.store import merge_groups
from dovetail.runtime.message import Kind, Message, void_messages
from dovetail.runtime.probe.emit_order import Alike
from dovetail.runtime.probe.frame import Frame
from dovetail.runtime.probe.hop_probe import HopProbe
from dovetail.runtime.probe.lone_row_operator import LoneRowOperator
from dovetail.runtime.probe.open_stores import open_stores
from dovetail.runtime.probe.probe_operator import ProbeOperator
from dovetail.runtime.probe.rows_in_flight import OutgoingRows, RowsInFlight, concat_rows, unpack_rows
from dovetail.runtime.report import STATISTICS, MergedBuckets, TaskReport, UnitWork
from dovetail.runtime.result_sink import ResultSink
from dovetail.runtime.source.guarded_index import IndexGuard
from dovetail.runtime.source.merge_operator import run_merge
from dovetail.runtime.source.sample_joins import sample_joins
from dovetail.runtime.source.store_writer import PIECES_PER_SPLIT
from dovetail.runtime.watermarks import watermarks_after
from dovetail.store.bucket_file import BucketMeta

I64 = npt.NDArray[np.int64]


def hops_by_task(plan: SharedPlan) -> list[range]:
    """Which hops run in one task: rows change partitions between hops, unless there is only one partition."""
    hops = range(1, plan.hop_count + 1)
    if plan.placement.partition_count == 1:
        return [hops] if hops else []
    return [range(hop, hop + 1) for hop in hops]


def run_hops(task: BatchTask, partition: int, hops: range, messages: Iterable[Message]) -> Iterator[Message]:
    """Reports and bucket records pass through, so that the last hop hands the driver everything."""
    with work_limit(task.limits.longest_ms):
        yield from _run_hops(task, partition, hops, messages)


def _run_hops(task: BatchTask, partition: int, hops: range, messages: Iterable[Message]) -> Iterator[Message]:
    ready_kernels()
    began = time.perf_counter()
    current: list[BucketMeta] = []
    void: set[str] = set()
    ends_groups = hops[-1] == task.plan.hop_count and bool(task.plan.groups)
    received: dict[Kind, list[bytes]] = {Kind.PARTIAL: [], Kind.GROUPS: [], Kind.TIMES: []}
    for message in messages:
        if message.kind is Kind.PARTIAL or (ends_groups and message.kind in received):
            received[message.kind].append(message.payload)
        else:
            yield message
            if message.kind is Kind.BUCKET:
                current.append(BucketMeta.from_json(json.loads(message.payload)))
            elif message.kind is Kind.TIMES:
                received[Kind.TIMES].append(message.payload)
            elif message.kind is Kind.VOID:
                void.update(json.loads(message.payload))
    output = _Output(task, partition, hops, current)
    output.report.leave_out(void)
    rows = [unpack_rows(payload, task.plan.epoch) for payload in received[Kind.PARTIAL]]
    for hop in hops:
        work = UnitWork(partition, hop)
        output.report.work.append(work)
        if hop == hops[-1] and ends_groups and hop > 1:
            groups = [message.payload for message in output.folder.close()]
            output.groups.run([*received[Kind.GROUPS], *groups], received[Kind.TIMES])
        else:
            probing = _Hop(task, partition, hop, output, work)
            probing.probe(rows, received[Kind.TIMES])
            if hop == hops[-1]:
                yield from probing.outgoing.close()
            rows = probing.kept
        began = _note_seconds(output.report, work, began)
    yield from output.folder.close()
    yield from void_messages(output.report.void_queries - void, task.plan.placement.partition_count)
    for meta in output.close():
        yield Message(0, Kind.STORED, json.dumps(meta.to_json()).encode())
    _note_seconds(output.report, output.report.work[-1], began)
    yield Message(0, Kind.REPORT, output.report.to_bytes())


def _note_seconds(report: TaskReport, work: UnitWork, began: float) -> float:
    """The time since then is of this hop; the time now."""
    now = time.perf_counter()
    work.seconds += now - began
    report.seconds_by_part[f"hop {work.hop}"] = work.seconds
    return now


class _Output:
    """What the hops of one task find: answers, rows of intermediates and groups; and what they tell of it."""

    def __init__(self, task: BatchTask, partition: int, hops: range, current: list[BucketMeta]) -> None:
        self.report = TaskReport()
        self.opened = open_stores(Path(task.root), task.plan.stores, task.buckets, current, task.timezone)
        self._answers = AnswerFiles(task, partition)
        self._buckets = BucketFiles(Path(task.root), task.batch)
        snapshots = self.opened.snapshots
        guard = IndexGuard(task.plan, task.limits, self.report)
        for snapshot in snapshots.values():
            snapshot.guard = guard
        partitions = task.plan.placement.partition_count
        # No two tasks of a batch may use the same split of a store.
        first_split, last_split = ((hop * partitions + partition) * PIECES_PER_SPLIT for hop in (hops[0], hops[-1]))
        self._sink = ResultSink(task, first_split, snapshots, self.report, self._answers, self._buckets)
        self.folder = GroupFolder(task, snapshots, self.report)
        self.groups = GroupStage(task, partition, last_split, self.report, self._answers, self._buckets)
        self._group_ids = {group.id for group in task.plan.groups}

    def take(self, emit: Emit, frame: Frame) -> None:
        """Rows that are whole: answers, rows of an intermediate, or of groups."""
        (self.folder if emit.into in self._group_ids else self._sink).add(emit, frame)

    def take_alike(self, alike: Alike, queries: list[str], sizes: list[int], frame: Frame) -> None:
        self._sink.add_alike(alike, queries, sizes, frame)

    def close(self) -> list[BucketMeta]:
        """Write what still waits; the buckets of intermediates and groups."""
        self._sink.close()
        self._answers.close(self.report)
        self._buckets.close()
        return [*self._sink.stored, *self.groups.written]


class _Hop:
    """One hop. Rows for the next are `kept` where that is of the same task, and else `outgoing`."""

    def __init__(self, task: BatchTask, partition: int, hop: int, output: _Output, work: UnitWork) -> None:
        self._task = task
        self._partition = partition
        self._hop = hop
        self._output = output
        self._work = work
        self._report = output.report
        self._snapshots = output.opened.snapshots
        flat = flat_plan(task.plan)
        is_alone = task.plan.placement.partition_count == 1
        self.outgoing = OutgoingRows(task.plan, flat, hop)
        self.kept: list[RowsInFlight] = []
        fold = FactorizedOperator(task, self._snapshots, output.folder, self._report, work)
        self._alone = ProbeOperator(task, self._snapshots, output.take, self._report, work, fold=fold)
        self._probe: HopProbe | None = None
        if hop <= len(flat.hops):
            send_on = self._keep if is_alone else self.outgoing.add
            self._probe = HopProbe(task, output.opened, flat, self._report, work, output, send_on, self._alone)

    def probe(self, rows: list[RowsInFlight], times: list[bytes]) -> None:
        """`rows` came from the hop before; `times` say how far streams are."""
        if self._hop == 1:
            self._probe_new_rows()
            self._answer_lone_rows(times)
            self._merge()
            self._sample_joins()
        elif rows and self._probe is not None:
            self._probe.probe_rows(concat_rows(rows))

    def _probe_new_rows(self) -> None:
        """The batch's own rows, and stored rows that act as new ones: those of the batch's chunk of each fill."""
        for tree in self._task.plan.trees:
            snapshot = self._snapshots[tree.start]
            emit_rows(self._task, tree, snapshot, self._partition, self._alone, self._report, self._output.take)
        if self._probe is not None:
            self._probe.probe_new_rows(self._chunks())

    def _chunks(self) -> dict[str, list[tuple[int, int, int]]]:
        """By the store that is filled: a bucket of the driver, and which of its rows."""
        driver_by_store = {fill.store: fill.driver for fill in self._task.plan.fills}
        found: dict[str, list[tuple[int, int, int]]] = {}
        for chunk in self._task.fill_chunks:
            metas = self._snapshots[driver_by_store[chunk.store]].metas
            ordinal_by_key = {meta.key: ordinal for ordinal, meta in enumerate(metas)}
            found[chunk.store] = [(ordinal_by_key[part.bucket], part.lower_row, part.upper_row) for part in chunk.parts]
        return found

    def _answer_lone_rows(self, times: Iterable[bytes]) -> None:
        """Rows that are answered for what partners they have."""
        plan = self._task.plan
        if plan.lone_rows or plan.matched_rows:
            watermarks = watermarks_after(self._task, times)
            take = self._output.take
            LoneRowOperator(self._task, self._snapshots, take, self._report, self._work, watermarks).answer()

    def _merge(self) -> None:
        for merge in self._task.merges:
            if merge.partition == self._partition:
                self._report.merges.append(self._merged(merge))

    def _merged(self, merge: MergeTask) -> MergedBuckets:
        root, batch = Path(self._task.root), self._task.batch
        tables = (table for group in self._task.plan.groups for table in group.tables)
        table = next((table for table in tables if table.id == merge.store), None)
        if table is not None:
            return merge_groups(root, batch, merge, table)
        return run_merge(root, batch, merge, self._snapshots[merge.store].store.event_time)

    def _sample_joins(self) -> None:
        with self._report.timed(STATISTICS):
            self._report.samples += sample_joins(self._task, self._partition, self._snapshots)

    def _keep(self, rows: RowsInFlight) -> None:
        if len(rows):
            self.kept.append(rows)
