"""Rows of outer, anti and semi joins that are answered for what partners they have (`plan/lone_rows.py` says when).

Whether a row has a partner is told by one task alone, whatever the routing of the stores: it reads all buckets that may
hold one. Decided rows and new left rows are dealt out to the partitions by their place in the bucket. New right rows
are those of the partition's key groups, as the left rows are that they find, both by the placement of the left rows:
so two partitions never find the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.kernels.evaluate.evaluate import evaluate_mask
from dovetail.kernels.gather_rows import ABSENT, make_refs
from dovetail.kernels.match.leg_bits import bits_of_rows, no_bits
from dovetail.kernels.match.special_values import NONE_PASS, NULL_TIME
from dovetail.kernels.select.select_rows import Mask
from dovetail.kernels.word_bits import WORD_BITS, bit_at, has_bit
from dovetail.plan.lone_rows import LoneRows, MatchedRows, only_node
from dovetail.plan.placement import ONE_PARTITION
from dovetail.plan.probe_tree import Emit, Leg, ProbeTree
from dovetail.plan.query_limits import Found
from dovetail.plan.routing import HASH
from dovetail.query.expression import TRUE, Expression
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.probe.frame import Frame, FrameValues
from dovetail.runtime.probe.partial import Partial
from dovetail.runtime.probe.probe_operator import ProbeOperator, TakeRows
from dovetail.runtime.probe.route_entries import Route
from dovetail.runtime.probe.snapshot import StoreSnapshot
from dovetail.runtime.report import TaskReport, UnitWork
from dovetail.runtime.source.key_codes import probing_codes
from dovetail.store.bucket_file import BucketMeta

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
ALL_ENTRIES = Route(HASH, ONE_PARTITION, 0)
_NO_REFS: U64 = np.zeros(0, np.uint64)
_NO_TIMES: I64 = np.zeros(0, np.int64)


class _Witnesses:
    """Takes rows that tell who are partners, and remembers one of their members for each leg."""

    def __init__(self) -> None:
        self._member = 0
        self._refs_by_leg: dict[tuple[str, int], list[U64]] = {}

    def add(self, emit: Emit, frame: Frame) -> None:
        self._refs_by_leg.setdefault((emit.query, emit.start), []).append(np.unique(frame.refs[self._member]))

    def listen(self, member: int) -> None:
        self._member, self._refs_by_leg = member, {}

    def heard(self, leg: Leg) -> U64:
        """The distinct references of that member, ascending."""
        return np.unique(np.concatenate([_NO_REFS, *self._refs_by_leg.get((leg.query, leg.start), [])]))


@dataclass(frozen=True)
class _Asking:
    """Rows of one store that ask for partners, by ascending code; `bits` tell which legs ask."""

    codes: U64
    refs: U64
    times: I64 | None
    bits: U64

    def refs_of(self, leg: int) -> U64:
        return self.refs[has_bit(self.bits[leg // WORD_BITS], leg)]


@dataclass(frozen=True)
class _Keyless:
    """New rows with a NULL in their key: they have no partner."""

    refs: U64
    bits: U64

    def refs_of(self, leg: int) -> U64:
        return self.refs[has_bit(self.bits[leg // WORD_BITS], leg)]


class LoneRowOperator:
    """One partition's part of what a batch decides; rows that are answered go to `take`."""

    def __init__(
        self,
        task: BatchTask,
        snapshots: Mapping[str, StoreSnapshot],
        take: TakeRows,
        report: TaskReport,
        work: UnitWork,
        watermark_us_by_stream: dict[str, int],
    ) -> None:
        self._task = task
        self._partition = work.partition
        self._snapshots = snapshots
        self._take = take
        self._report = report
        self._before_us = dict(task.decided_before_us)
        self._now_us = watermark_us_by_stream
        self._witnesses = _Witnesses()
        self._work = work
        self._probe_all = self._probe_by(ALL_ENTRIES)

    def _probe_by(self, route: Route) -> ProbeOperator:
        tell = self._witnesses.add
        return ProbeOperator(self._task, self._snapshots, tell, self._report, self._work, route)

    def answer(self) -> None:
        for lone in self._task.plan.lone_rows:
            self._answer_lone(lone)
        for matched in self._task.plan.matched_rows:
            self._answer_matched(matched)

    def _answer_lone(self, lone: LoneRows) -> None:
        with self._report.charging({leg.query for leg in lone.tree.legs}):
            self._answer_undisturbed(lone)

    def _answer_undisturbed(self, lone: LoneRows) -> None:
        asking, keyless = self._asking(lone.tree, self._due(lone), ALL_ENTRIES)
        found = self._partners(self._probe_all, lone.tree, asking)
        target = only_node(lone.tree).step.target
        for leg, answer in enumerate(lone.answers):
            refs = np.setdiff1d(asking.refs_of(leg), found[leg], assume_unique=True)
            frame = Frame((lone.tree.start,), (np.concatenate([refs, keyless.refs_of(leg)]),))
            self._answer(answer.emit, frame.joined(target, np.full(len(frame), ABSENT)), answer.where)

    def _answer_matched(self, matched: MatchedRows) -> None:
        with self._report.charging({emit.query for emit in matched.emits}):
            self._answer_partnered(matched)

    def _answer_partnered(self, matched: MatchedRows) -> None:
        new_left, _ = self._asking(matched.from_left, self._new(matched.from_left), ALL_ENTRIES)
        found = self._partners(self._probe_all, matched.from_left, new_left)
        step = only_node(matched.from_right).step
        own_entries = Route(HASH, self._task.plan.placement_of(step.target, step.index), self._partition)
        new_right, _ = self._asking(matched.from_right, self._new(matched.from_right), own_entries)
        candidates = self._partners(self._probe_by(own_entries), matched.from_right, new_right, member=1)
        known = self._partners(self._probe_all, matched.again, self._asking_again(matched.again, candidates))
        for leg, emit in enumerate(matched.emits):
            first = np.setdiff1d(candidates[leg], known[leg], assume_unique=True)
            self._answer(emit, Frame((matched.from_left.start,), (np.concatenate([found[leg], first]),)), TRUE)

    def _answer(self, emit: Emit, frame: Frame, where: Expression) -> None:
        with self._report.charging({emit.query}):
            if len(frame) and where != TRUE:
                values = FrameValues(frame, self._snapshots)
                mask = evaluate_mask(where, values.column, len(frame), timezone=self._task.timezone)
                frame = frame.take(np.flatnonzero(mask))
            if len(frame) == 0 or emit.query in self._report.void_queries:
                return
            if not emit.is_answer or self._report.count(emit.query, Found(results=len(frame)), self._task.limits):
                self._take(emit, frame)

    def _partners(self, probe: ProbeOperator, tree: ProbeTree, asking: _Asking, member: int = 0) -> list[U64]:
        """By leg the distinct references of `member` (the asking row, or its partner) in the pairs that rows find."""
        self._witnesses.listen(member)
        node = only_node(tree)
        rows = Partial(node.id, asking.codes, Frame((tree.start,), (asking.refs,)), asking.bits)
        probe.probe(node, rows, start_times=asking.times)
        return [self._witnesses.heard(leg) for leg in node.legs]

    def _new(self, tree: ProbeTree) -> Iterator[tuple[int, Mask]]:
        """All rows of this batch."""
        snapshot = self._snapshots[tree.start]
        for ordinal in range(snapshot.current_from, len(snapshot.metas)):
            yield ordinal, np.ones(snapshot.metas[ordinal].rows, np.bool_)

    def _due(self, lone: LoneRows) -> Iterator[tuple[int, Mask]]:
        """By bucket the rows that this batch decides, those without a key aside."""
        snapshot = self._snapshots[lone.tree.start]
        lower_us, upper_us = lone.decided_until(self._before_us), lone.decided_until(self._now_us)
        # Rows without a time are decided as new ones; their time is below all others.
        lower_us = NULL_TIME + 1 if lower_us is None else lower_us
        upper_us = NULL_TIME + 1 if upper_us is None else upper_us
        for ordinal, meta in enumerate(snapshot.metas):
            if ordinal >= snapshot.current_from:
                yield ordinal, snapshot.bucket_times(ordinal) < upper_us
            elif _has_times_between(meta, lower_us, upper_us):
                times = snapshot.bucket_times(ordinal)
                yield ordinal, (times >= lower_us) & (times < upper_us)

    def _asking(self, tree: ProbeTree, due: Iterable[tuple[int, Mask]], route: Route) -> tuple[_Asking, _Keyless]:
        """Of the rows that are due those that some leg selects. Rows without a key are due when they are new.

        Where the route leads to all entries each partition has its share of the rows, else those that it leads to.
        """
        snapshot = self._snapshots[tree.start]
        try:
            return self._collected(tree, snapshot, due, route)
        except Exception as error:  # noqa: BLE001 - whatever selections and keys raise on these rows
            self._report.fail({leg.query for leg in tree.legs}, error)
            none = no_bits(len(tree.legs), 0)
            return _Asking(_NO_REFS, _NO_REFS, _NO_TIMES, none), _Keyless(_NO_REFS, none)

    def _collected(
        self, tree: ProbeTree, snapshot: StoreSnapshot, due: Iterable[tuple[int, Mask]], route: Route
    ) -> tuple[_Asking, _Keyless]:
        places = self._probe_all.selection_bits(tree.start, tree.legs).place
        index = only_node(tree).step.start_index
        none = no_bits(len(tree.legs), 0)
        codes, refs, times, bits = [_NO_REFS], [_NO_REFS], [_NO_TIMES], [none]
        keyless_refs, keyless_bits = [_NO_REFS], [none]
        for ordinal, due_mask in due:
            if (places[:, ordinal] == NONE_PASS).all():
                # The bucket may be older than all that the queries use, and lack what they need.
                continue
            row_count = len(due_mask)
            row_bits = bits_of_rows(places[:, ordinal].tolist(), snapshot.words(ordinal).__getitem__, row_count)
            own_mask = np.bitwise_or.reduce(row_bits) != 0
            if route is ALL_ENTRIES:
                own_mask &= np.arange(row_count) % self._task.plan.placement.partition_count == self._partition
            for entries in (snapshot.entries(ordinal, index, choice) for _, choice in route.probing()):
                idx = np.flatnonzero((own_mask & due_mask)[entries.rows])
                codes.append(entries.codes[idx])
                refs.append(entries.refs[idx])
                bits.append(row_bits[:, entries.rows[idx]])
                if snapshot.store.event_time is not None:
                    times.append(entries.times(snapshot.event_time)[idx])
                own_mask[entries.rows] = False
            if ordinal >= snapshot.current_from:
                home_rows = snapshot.metas[ordinal].home_rows
                rows = snapshot.with_null_key(ordinal, index, np.flatnonzero(own_mask[:home_rows]))
                keyless_refs.append(make_refs(ordinal, rows))
                keyless_bits.append(row_bits[:, rows])
        order = np.argsort(np.concatenate(codes), kind="stable")
        asking = _Asking(
            np.concatenate(codes)[order],
            np.concatenate(refs)[order],
            None if snapshot.store.event_time is None else np.concatenate(times)[order],
            np.concatenate(bits, axis=1)[:, order],
        )
        return asking, _Keyless(np.concatenate(keyless_refs), np.concatenate(keyless_bits, axis=1))

    def _asking_again(self, tree: ProbeTree, refs_by_leg: Sequence[U64]) -> _Asking:
        """Rows that have a partner, so none of them lacks a key."""
        refs = np.unique(np.concatenate([_NO_REFS, *refs_by_leg]))
        bits = no_bits(len(refs_by_leg), len(refs))
        for leg, own in enumerate(refs_by_leg):
            bits[leg // WORD_BITS][np.searchsorted(refs, own)] |= bit_at(leg)
        values = FrameValues(Frame((tree.start,), (refs,)), self._snapshots)
        codes = probing_codes(only_node(tree).step, values.column, len(refs), self._task.timezone).codes
        order = np.argsort(codes, kind="stable")
        return _Asking(codes[order], refs[order], None, bits[:, order])


def _has_times_between(meta: BucketMeta, lower_us: int, upper_us: int) -> bool:
    if meta.min_time_us is None or meta.max_time_us is None:
        return False
    return meta.min_time_us < upper_us and meta.max_time_us >= lower_us
