"""Probing one node: its pairs are found once for all queries that take the step.

What differs between queries (selection, time bounds, first batch) is a bit per leg, decided while matching; residual
predicates are evaluated last, on the rows a leg still wants. A query that fails or passes a limit loses its bits: what
only it wanted is not matched any more, and the others do not notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dovetail.kernels.evaluate.evaluate import evaluate_mask
from dovetail.kernels.match.entry_tables import TableEntries
from dovetail.kernels.match.leg_bits import counts_of_legs, rows_of_leg
from dovetail.kernels.match.match_pairs import LegBounds, Pairs, ProbeRows, StoredBuckets, StoredRows, match_pairs
from dovetail.kernels.match.match_ranges import match_ranges
from dovetail.kernels.word_bits import WORD_BITS, bit_at
from dovetail.plan.probe_tree import Emit, Leg, ProbeNode
from dovetail.plan.query_limits import Found
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import Expression, all_of
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.factorized.factorized_operator import FactorizedOperator
from dovetail.runtime.probe.frame import Frame, FrameValues, concat_frames
from dovetail.runtime.probe.node_facts import facts_of
from dovetail.runtime.probe.partial import Partial
from dovetail.runtime.probe.probe import BucketEntries, Probe
from dovetail.runtime.probe.range_demands import RangePart, needs_ranges, range_demands
from dovetail.runtime.probe.route_entries import EntryChoice, Part, Route
from dovetail.runtime.probe.snapshot import NO_TIMES, Entries, SelectionBits, StoreSnapshot
from dovetail.runtime.report import StepCount, TaskReport, UnitWork
from dovetail.runtime.stopwatch import Stopwatch

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
SendOn = Callable[[Frame, U64], None]
"""Takes joined rows that go on, with the bits of the legs that want each."""
TakeRows = Callable[[Emit, Frame], None]
ROWS_A_PIECE = 1 << 16
LOOKS_AFTER_S = 0.05


def send_nothing_on(_frame: Frame, _bits: U64) -> None:
    raise ValueError("a node with children would need a hop that is not there")


class ProbeOperator:
    """Probes nodes of one hop in one partition, one by one; whole rows go to `take`."""

    def __init__(
        self,
        task: BatchTask,
        snapshots: Mapping[str, StoreSnapshot],
        take: TakeRows,
        report: TaskReport,
        work: UnitWork,
        fixed_route: Route | None = None,
        fold: FactorizedOperator | None = None,
    ) -> None:
        """Where there is no `fixed_route`, rows are spread as the plan says. Factorized emits are for `fold`."""
        self._task = task
        self._snapshots = snapshots
        self._take = take
        self._report = report
        self._send_on: SendOn = send_nothing_on
        self._complete_from = dict(task.plan.complete_from_by_query)
        self._work = work
        self._fixed_route = fixed_route
        self._route_by_index: dict[tuple[str, str], Route] = {}
        self._fold = fold

    def route(self, node: ProbeNode) -> Route:
        """How the index that is probed there is spread over partitions."""
        if self._fixed_route is not None:
            return self._fixed_route
        plan, target, index = self._task.plan, node.step.target, node.step.index
        found = self._route_by_index.get((target, index.id))
        if found is None:
            found = Route(plan.routing(target, index), plan.placement_of(target, index), self.partition)
            self._route_by_index[target, index.id] = found
        return found

    @property
    def partition(self) -> int:
        return self._work.partition

    def probe(
        self,
        node: ProbeNode,
        partial: Partial,
        send_on: SendOn = send_nothing_on,
        start_times: I64 | None = None,
        part: Part = Part.OWN,
        unwanted_rows: int = 0,
    ) -> None:
        """All results that `partial` (sorted by code) finds at `node`; `start_times` are member 0's, if known.

        Whole rows are taken, those that go on are sent. Rows that no leg wants may be left out: then
        `unwanted_rows` tells of how many others looked as well.
        """
        if len(partial.frame) == 0:
            return
        self._send_on = send_on
        wanted_rows = int(np.count_nonzero(np.bitwise_or.reduce(partial.bits)))
        route = self.route(node)
        count = StepCount(
            node.id, self._work.hop, len(partial.codes) + unwanted_rows, 0, wanted_rows, copies=route.copies[part]
        )
        self._work.probed_rows += count.probe_rows
        self._probe_counted(node, partial, count, start_times, part)
        if node.step.before_batch is None:
            # What a fill joins is not what new rows meet: planners shall not learn from it.
            self._report.steps.append(count)

    def _probe_counted(
        self, node: ProbeNode, partial: Partial, count: StepCount, start_times: I64 | None, part: Part
    ) -> None:
        """What is found is added to `count`."""
        facts = facts_of(self._task.plan, node, self._task.timezone)
        if facts.queries <= self._report.void_queries:
            return
        route = self.route(node)
        with self._report.charging(facts.queries):
            members, bounds = facts.members, facts.bounds
            selections = self.selection_bits(node.step.target, node.legs)
            choices = route.stored(part, partial.codes)
            rows = ProbeRows(partial.codes, partial.bits, self._member_times(members, partial, start_times))
            stored = [(ordinal, choice) for ordinal in self._visible(node) for choice in choices]
            ranges = self._ranges(node, partial, rows, bounds, stored)
            probe = Probe(node, partial, rows, bounds, selections, ranges, count)
            self._stop_void_legs(node, rows, 0)
            unfolded = [] if self._fold is None else self._fold.fold_legs(probe, stored)
            for each, entries in ((probe, stored), *unfolded):
                self._join(each, entries)

    def _visible(self, node: ProbeNode) -> Iterator[int]:
        """The buckets whose rows the step may see."""
        snapshot = self._snapshots[node.step.target]
        last = len(snapshot.metas) if node.step.visibility is Visibility.UP_TO_NOW else snapshot.current_from
        first_batch = min(self._complete_from[leg.query] for leg in node.legs)
        before_batch = node.step.before_batch
        for ordinal, meta in enumerate(snapshot.metas[:last]):
            if meta.lower_batch >= first_batch and (before_batch is None or meta.upper_batch < before_batch):
                yield ordinal

    def _join(self, probe: Probe, stored: Sequence[BucketEntries]) -> None:
        """Every leg that wants some of the rows gets what they meet among the stored entries."""
        void_count = len(self._report.void_queries)
        watch = Stopwatch()
        for frame, bits in _in_larger_pieces(self._matches(probe, stored, watch)):
            found_s = watch.lap()
            probe.count.matched_rows += len(frame)
            self._decide(probe.node, frame, bits, found_s)
            void_count = self._stop_void_legs(probe.node, probe.rows, void_count)
            watch.lap()

    def _ranges(
        self,
        node: ProbeNode,
        partial: Partial,
        rows: ProbeRows,
        bounds: LegBounds,
        stored: Sequence[BucketEntries],
    ) -> tuple[RangePart, ...] | None:
        if not needs_ranges(node):
            return None
        snapshot = self._snapshots[node.step.target]
        values = FrameValues(partial.frame, self._snapshots)
        largest = max(stored, key=lambda each: snapshot.metas[each[0]].rows, default=None)
        entries = None if largest is None else snapshot.entries(largest[0], node.step.index, largest[1])
        return range_demands(node, values, rows, bounds, entries, self._task.timezone, self._report.fail)

    def _stop_void_legs(self, node: ProbeNode, rows: ProbeRows, known_count: int) -> int:
        """Take the bits of queries that became void; how many are void now."""
        void = self._report.void_queries
        if len(void) > known_count:
            rows.stop([place for place, leg in enumerate(node.legs) if leg.query in void])
        return len(void)

    def selection_bits(self, store: str, legs: tuple[Leg, ...]) -> SelectionBits:
        """Where these legs' selections on rows of `store` are decided; one that fails fails its queries."""

        def on_failure(selection: Expression, error: Exception) -> None:
            self._report.fail({leg.query for leg in legs if leg.selection == selection}, error)

        first_batches = [self._complete_from[leg.query] for leg in legs]
        return self._snapshots[store].selection_bits([leg.selection for leg in legs], first_batches, on_failure)

    def _member_times(self, members: tuple[int, ...], partial: Partial, start_times: I64 | None) -> I64:
        if members == (0,) and start_times is not None:
            return start_times.reshape(1, -1)
        times = np.empty((len(members), len(partial.codes)), np.int64)
        for place, member in enumerate(members):
            times[place] = self._snapshots[partial.frame.stores[member]].times(partial.frame.refs[member])
        return times

    def _spend_in_vain(self, probe: Probe, watch: Stopwatch) -> None:
        """Where nobody finds anything for long, all who look pay for it."""
        if watch.running_s > LOOKS_AFTER_S:
            known_count = len(self._report.void_queries)
            looking = {leg.query for leg in probe.node.legs} - self._report.void_queries
            self._report.spend(looking, watch.lap(), self._task.limits)
            self._stop_void_legs(probe.node, probe.rows, known_count)

    def _matches(self, probe: Probe, stored: Sequence[BucketEntries], watch: Stopwatch) -> Iterator[tuple[Frame, U64]]:
        """Pairs as frames, and the legs that want each."""
        step = probe.node.step
        confirm = facts_of(self._task.plan, probe.node, self._task.timezone).confirm
        find = self._by_keys if probe.ranges is None else self._within_ranges
        for pairs in find(probe, stored):
            probe.count.near_rows += pairs.near_count
            self._work.pairs += pairs.near_count
            if len(pairs.probe_idx) == 0:
                self._spend_in_vain(probe, watch)
            stops = probe.rows.stops
            for lower in range(0, len(pairs.probe_idx), ROWS_A_PIECE):
                if probe.rows.stops != stops and not probe.rows.bits.any():
                    return
                piece = slice(lower, lower + ROWS_A_PIECE)
                frame = probe.partial.frame.take(pairs.probe_idx[piece]).joined(step.target, pairs.stored_refs[piece])
                yield self._confirmed(frame, pairs.bits[:, piece], confirm)

    def _by_keys(self, probe: Probe, stored: Sequence[BucketEntries]) -> Iterator[Pairs]:
        """A few rows in all buckets at once: what is done for each of them is done by compiled code."""
        step, snapshot = probe.node.step, self._snapshots[probe.node.step.target]
        ordinals_by_choice: dict[EntryChoice, list[int]] = {}
        for ordinal, choice in stored:
            ordinals_by_choice.setdefault(choice, []).append(ordinal)
        is_timed = snapshot.store.event_time is not None
        for choice, ordinals in ordinals_by_choice.items():
            entries: list[TableEntries | None] = [None] * len(snapshot.metas)
            for ordinal in ordinals:
                entries[ordinal] = snapshot.entry_table(ordinal, step.index, choice)
            buckets = StoredBuckets(
                entries,
                snapshot.time_addresses if is_timed else np.zeros(len(entries), np.uint64),
                snapshot.facts.time_ranges,
                probe.selections.place,
                probe.selections.addresses,
            )
            yield from match_pairs(probe.rows, buckets, probe.bounds, max_pairs=self._task.max_pairs)

    def _within_ranges(self, probe: Probe, stored: Sequence[BucketEntries]) -> Iterator[Pairs]:
        """Part by part, bucket by bucket."""
        if probe.ranges is None:
            raise ValueError("a step without ranges")
        for part in probe.ranges:
            rows = probe.rows if len(probe.ranges) == 1 else probe.rows.wanted_by(part.legs)
            for ordinal, choice in stored:
                if not rows.bits.any():
                    break
                entries = self._snapshots[probe.node.step.target].entries(ordinal, probe.node.step.index, choice)
                if len(entries.codes):
                    yield from self._pairs(probe, rows, part, ordinal, entries)

    def _pairs(self, probe: Probe, rows: ProbeRows, part: RangePart, ordinal: int, entries: Entries) -> Iterator[Pairs]:
        step, bounds = probe.node.step, probe.bounds
        snapshot = self._snapshots[step.target]
        stored = StoredRows(
            codes=entries.codes,
            rows=entries.rows,
            times=snapshot.bucket_times(ordinal) if bounds.member_count else NO_TIMES,
            time_range=snapshot.facts.time_ranges[ordinal],
            places=probe.selections.place[:, ordinal],
            word_addresses=probe.selections.addresses[ordinal],
            ordinal=ordinal,
        )
        ranges = part.of_entries(probe.node, snapshot, ordinal, entries)
        has_keys = bool(step.index.keys)
        return match_ranges(rows, stored, bounds, ranges, has_keys=has_keys, max_pairs=self._task.max_pairs)

    def _confirmed(self, frame: Frame, bits: U64, confirm: Expression | None) -> tuple[Frame, U64]:
        if confirm is None:
            return frame, bits
        values = FrameValues(frame, self._snapshots)
        equal = evaluate_mask(confirm, values.column, len(frame), timezone=self._task.timezone)
        if equal.all():
            return frame, bits
        idx = np.flatnonzero(equal)
        return frame.take(idx), bits[:, idx]

    def _decide(self, node: ProbeNode, frame: Frame, bits: U64, found_s: float) -> None:
        """Give every leg the rows it wants: whole ones away, the others on to the next probe.

        What it took to find them is charged to those who want them, by the row.
        """
        facts = facts_of(self._task.plan, node, self._task.timezone)
        counts = counts_of_legs(bits, len(node.legs))
        ms_a_pair = 1e3 * found_s / (sum(counts) or 1)
        for place, count in enumerate(counts):
            query = node.legs[place].query
            if count == 0 or query in self._report.void_queries:
                continue
            if self._report.count(query, Found(pairs=count, ms=ms_a_pair * count), self._task.limits):
                with self._report.charging({query}):
                    self._decide_leg(node.legs[place], place, facts.emit_by_leg[place], frame, bits)
        _take_bits(bits, [place for place, leg in enumerate(node.legs) if leg.query in self._report.void_queries])
        if node.children:
            self._send_on(frame, bits)

    def _decide_leg(self, leg: Leg, place: int, emit: Emit | None, frame: Frame, bits: U64) -> None:
        """Rows that its residual predicates refuse lose the leg's bit."""
        if emit is None and not leg.residuals:
            return
        idx = rows_of_leg(bits, place)
        if leg.residuals:
            kept = self._without_residuals(leg, frame, idx)
            _take_bits(bits, [place])
            bits[place // WORD_BITS, kept] |= bit_at(place)
            idx = kept
        if emit is None:
            return
        if not emit.is_answer or self._report.count(leg.query, Found(results=len(idx)), self._task.limits):
            self._take(emit, frame if len(idx) == len(frame) else frame.take(idx))

    def _without_residuals(self, leg: Leg, frame: Frame, idx: I64) -> I64:
        """Only rows that pass everything else come here: SQL lets a predicate guard a later one from failing."""
        values = FrameValues(frame.take(idx), self._snapshots)
        watch = Stopwatch()
        kept: I64 = idx[evaluate_mask(all_of(leg.residuals), values.column, len(idx), timezone=self._task.timezone)]
        self._report.spend((leg.query,), watch.lap(), self._task.limits)
        return kept


def _take_bits(bits: U64, places: Sequence[int]) -> None:
    for place in places:
        bits[place // WORD_BITS] &= ~bit_at(place)


def _in_larger_pieces(matches: Iterable[tuple[Frame, U64]]) -> Iterator[tuple[Frame, U64]]:
    """What is found in several buckets, together: deciding and sending cost as much for a few rows as for many."""
    frames: list[Frame] = []
    bits: list[U64] = []
    rows = 0
    for frame, own in matches:
        frames.append(frame)
        bits.append(own)
        rows += len(frame)
        if rows >= ROWS_A_PIECE:
            yield concat_frames(frames), _side_by_side(bits)
            frames, bits, rows = [], [], 0
    if frames:
        yield concat_frames(frames), _side_by_side(bits)


def _side_by_side(bits: Sequence[U64]) -> U64:
    """One layout, so that kernels are compiled once."""
    return np.ascontiguousarray(bits[0] if len(bits) == 1 else np.concatenate(bits, axis=1))
