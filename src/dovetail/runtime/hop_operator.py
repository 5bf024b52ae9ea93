"""One hop in one partition: new rows (hop 1) or partial results (later hops) probe the stores (M1)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dovetail.kernels.evaluate.work_limit import work_limit
from dovetail.kernels.gather_rows import rows_of_refs
from dovetail.kernels.match.leg_bits import bits_of_rows
from dovetail.kernels.ready_kernels import ready_kernels
from dovetail.plan.fill import ChunkPart
from dovetail.plan.probe_tree import Emit, ProbeNode, ProbeTree
from dovetail.runtime.answer_files import AnswerFiles
from dovetail.runtime.batch_task import BatchTask, MergeTask
from dovetail.runtime.emit_rows import emit_rows
from dovetail.runtime.factorized.factorized_operator import FactorizedOperator
from dovetail.runtime.groups.folder import GroupFolder
from dovetail.runtime.groups.group_operator import GroupStage
from dovetail.runtime.groups.store import merge_groups
from dovetail.runtime.message import Kind, Message, void_messages
from dovetail.runtime.probe.frame import Frame
from dovetail.runtime.probe.lone_row_operator import LoneRowOperator
from dovetail.runtime.probe.partial import OutgoingPartials, Partial, receive_partials
from dovetail.runtime.probe.probe_operator import ProbeOperator
from dovetail.runtime.probe.route_entries import Part
from dovetail.runtime.probe.snapshot import StoreSnapshot, forget_buckets
from dovetail.runtime.report import STATISTICS, MergedBuckets, TaskReport, UnitWork
from dovetail.runtime.result_sink import ResultSink
from dovetail.runtime.source.merge_operator import run_merge
from dovetail.runtime.source.sample_joins import sample_joins
from dovetail.runtime.source.store_writer import PIECES_PER_SPLIT
from dovetail.runtime.watermarks import watermarks_after
from dovetail.store.bucket_file import BucketMeta, by_store

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
        worker.probe_fills()
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
        self._outgoing = OutgoingPartials(task.plan)
        self.work = UnitWork(partition, hop)
        self.report = TaskReport(work=[self.work])
        forget_buckets(self._root, {meta.path for meta in (*task.buckets, *current)})
        # Every task must number the buckets alike; messages arrive in any order.
        current = sorted(current, key=lambda meta: meta.place)
        earlier, newest = by_store(task.buckets), by_store(current)
        self._snapshots = {
            store.id: StoreSnapshot(
                self._root, store, earlier.get(store.id, []), newest.get(store.id, []), task.timezone
            )
            for store in task.plan.stores
        }
        # No two tasks of a batch may use the same split of a store.
        first_split = (hop * task.plan.placement.partition_count + partition) * PIECES_PER_SPLIT
        self._answers = AnswerFiles(task, partition)
        self._sink = ResultSink(task, first_split, self._snapshots, self.report, self._answers)
        self._folder = GroupFolder(task, self._snapshots, self.report)
        self._table_by_id = {table.id: table for group in task.plan.groups for table in group.tables}
        self._group_ids = {group.id for group in task.plan.groups}
        self.groups = GroupStage(task, partition, first_split, self.report, self._answers)
        fold = FactorizedOperator(task, self._snapshots, self._folder, self.report, self.work)
        self._probe = ProbeOperator(
            task, self._snapshots, self._take, self.report, self.work, self._outgoing.add, fold=fold
        )

    def _take(self, emit: Emit, frame: Frame) -> None:
        """Rows that are whole: answers, rows of an intermediate, or of groups."""
        (self._folder if emit.into in self._group_ids else self._sink).add(emit, frame)

    def probe_new_rows(self) -> None:
        for tree in self._task.plan.trees:
            snapshot = self._snapshots[tree.start]
            emit_rows(self._task, tree, snapshot, self._partition, self._probe, self.report, self._take)
            for ordinal in range(snapshot.current_from, len(snapshot.metas)):
                for node in tree.children:
                    self._probe_from(tree, node, snapshot, ordinal)

    def probe_fills(self) -> None:
        """Stored rows act as new ones: those of the batch's chunk of each fill."""
        tree_by_store = {fill.store: fill.tree for fill in self._task.plan.fills}
        for chunk in self._task.fill_chunks:
            tree = tree_by_store[chunk.store]
            snapshot = self._snapshots[tree.start]
            ordinal_by_path = {meta.path: ordinal for ordinal, meta in enumerate(snapshot.metas)}
            for part in chunk.parts:
                for node in tree.children:
                    self._probe_from(tree, node, snapshot, ordinal_by_path[part.path], part)

    def _probe_from(
        self, tree: ProbeTree, node: ProbeNode, snapshot: StoreSnapshot, ordinal: int, chunk: ChunkPart | None = None
    ) -> None:
        queries = {leg.query for leg in node.legs}
        if queries <= self.report.void_queries:
            return
        with self.report.charging(queries):
            for part, start, start_times in self._start(tree, node, snapshot, ordinal):
                partial, times = (start, start_times) if chunk is None else _rows_of_chunk(start, start_times, chunk)
                self._probe.probe(node, partial, self._hop, times, part)

    def probe_partials(self, payloads: list[bytes]) -> None:
        placed = self._task.plan.placed_nodes
        for partial in receive_partials(payloads, lambda node: placed[node].stores):
            node = placed[partial.node].node
            for part, idx in self._probe.route(node).parts_of(partial.codes):
                self._probe.probe(node, partial if idx is None else partial.take(idx), self._hop, part=part)

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

    def _start(
        self, tree: ProbeTree, node: ProbeNode, snapshot: StoreSnapshot, ordinal: int
    ) -> Iterator[tuple[Part, Partial, I64 | None]]:
        """The rows of one bucket that this partition probes with, in the order of the node's key; their times."""
        start_legs = {(leg.query, leg.start): leg for leg in tree.legs}
        legs = tuple(start_legs[leg.query, leg.start] for leg in node.legs)
        places = self._probe.selection_bits(tree.start, legs).place[:, ordinal].tolist()
        for part, choice in self._probe.route(node).probing():
            entries = snapshot.entries(ordinal, node.step.start_index, choice)
            if len(entries.codes) == 0:
                continue
            bits = bits_of_rows(places, entries.words, len(entries.codes))
            times = entries.times(snapshot.event_time) if snapshot.store.event_time else None
            yield part, Partial(node.id, entries.codes, Frame((tree.start,), (entries.refs,)), bits), times


def _rows_of_chunk(partial: Partial, times: I64 | None, chunk: ChunkPart) -> tuple[Partial, I64 | None]:
    rows = rows_of_refs(partial.frame.refs[0])
    idx = np.flatnonzero((rows >= chunk.lower_row) & (rows < chunk.upper_row))
    return partial.take(idx), None if times is None else times[idx]
