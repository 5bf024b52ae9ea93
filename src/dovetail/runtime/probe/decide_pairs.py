"""What is asked of pairs besides keys, times and selections: confirmed keys, limits, residuals; then who takes them.

It is asked once for all nodes that ask the same of the same stores, and apart only where that fails: then those on
whose own pairs it fails are charged, and nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dovetail.kernels.evaluate.evaluate import evaluate_mask
from dovetail.kernels.match.hand_on import count_legs, pairs_by_leg
from dovetail.lowering.flat_plan import FlatHop, FlatLeg, FlatPlan
from dovetail.plan.query_limits import Found
from dovetail.query.expression import Expression
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.probe.emit_order import Alike, Taker
from dovetail.runtime.probe.frame import Frame, FrameValues, concat_frames, slice_of
from dovetail.runtime.probe.hop_facts import Confirmation, HopFacts, Residual
from dovetail.runtime.probe.hop_pairs import HopPairs, VoidLegs
from dovetail.runtime.probe.snapshot import StoreSnapshot
from dovetail.runtime.report import TaskReport
from dovetail.runtime.stopwatch import Stopwatch

I64 = npt.NDArray[np.int64]
FEW_ROWS = 1 << 12
"""Whoever has more answers pays by the row and not by the piece: nothing is won by making them with others'."""


class PairDecider:
    def __init__(
        self,
        task: BatchTask,
        flat: FlatPlan,
        hop: FlatHop,
        facts: HopFacts,
        snapshots: Mapping[str, StoreSnapshot],
        report: TaskReport,
        void: VoidLegs,
    ) -> None:
        self._task = task
        self._queries = flat.queries
        self._hop = hop
        self._facts = facts
        self._snapshots = snapshots
        self._report = report
        self._void = void

    def decide(self, pairs: HopPairs, looks: I64, watch: Stopwatch) -> None:
        """Bits are left where a leg wants a pair for good. `looks` is what it took to find them, by node."""
        pairs.word &= ~self._void.masks[pairs.node]
        for number, each in enumerate(self._facts.confirmations):
            is_asked = (self._facts.confirmation_of_node[pairs.node] == number) & (pairs.word != 0)
            self._confirm(each, np.flatnonzero(is_asked), pairs)
        found = count_legs(pairs.word, pairs.node, self._hop.arrays.leg_of_bit, len(self._hop.legs))
        self._charge(found, looks, watch.lap())
        self._void.take_from(pairs)
        if len(pairs):
            for residual in self._facts.residuals:
                self._hold(residual, pairs)
            self._void.take_from(pairs)

    def emit(self, pairs: HopPairs, taker: Taker) -> None:
        """Whole rows to whom they are answers, or more."""
        order = self._facts.emit_order
        emit_mask = self._hop.arrays.emit_mask
        idx, ends = pairs_by_leg(pairs.word, pairs.node, emit_mask, order.rank_of_bit, len(order.legs))
        if len(idx) == 0:
            return
        refs = pairs.frame(idx, ()).refs
        counts = np.diff(ends, prepend=0)
        rows = np.add.reduceat(counts, order.begins[:-1])
        for number in np.flatnonzero(rows).tolist():
            alike, first = order.alike[number], int(order.begins[number])
            own = counts[first : order.begins[number + 1]]
            begin = int(ends[first] - counts[first])
            frame = Frame(order.stores[first], tuple(each[begin : begin + int(rows[number])] for each in refs))
            legs = [(order.legs[first + at], int(own[at])) for at in np.flatnonzero(own).tolist()]
            if alike is None or own.max() > FEW_ROWS:
                self._emit_apart(legs, frame, taker)
            else:
                self._emit_alike(alike, legs, frame, taker)
        self._void.take_from(pairs)

    def _emit_alike(self, alike: Alike, legs: Sequence[tuple[FlatLeg, int]], frame: Frame, taker: Taker) -> None:
        """The rows of one leg come after those of another, so many of each."""
        queries: list[str] = []
        sizes: list[int] = []
        frames: list[Frame] = []
        begin = 0
        for leg, rows in legs:
            query = leg.leg.query
            if self._counts(query, rows):
                queries.append(query)
                sizes.append(rows)
                frames.append(slice_of(frame, begin, rows))
            begin += rows
        if queries:
            with self._report.charging(set(queries)):
                taker.take_alike(alike, queries, sizes, frame if len(queries) == len(legs) else concat_frames(frames))

    def _emit_apart(self, legs: Sequence[tuple[FlatLeg, int]], frame: Frame, taker: Taker) -> None:
        begin = 0
        for leg, rows in legs:
            query, emit = leg.leg.query, leg.emit
            if emit is not None and query not in self._report.void_queries:
                with self._report.charging({query}):
                    if not emit.is_answer or self._counts(query, rows):
                        taker.take(emit, slice_of(frame, begin, rows))
            begin += rows

    def _counts(self, query: str, rows: int) -> bool:
        """Whether answers of the query count, so many more included."""
        is_void = query in self._report.void_queries
        return not is_void and self._report.count(query, Found(results=rows), self._task.limits)

    def _confirm(self, asked: Confirmation, idx: I64, pairs: HopPairs) -> None:
        """A node at a time if it fails on all: so all who share the key are charged, and nobody else."""
        try:
            pairs.word[idx[~self._holds(asked.predicate, asked.stores, pairs, idx)]] = 0
        except Exception as error:
            nodes = np.unique(pairs.node[idx]).tolist()
            for number in nodes:
                own = idx[pairs.node[idx] == number]
                with self._report.charging({leg.leg.query for leg in self._hop.nodes[number].legs}):
                    if len(nodes) == 1:
                        raise error  # As it did: it is not tried again, which may take long.
                    pairs.word[own[~self._holds(asked.predicate, asked.stores, pairs, own)]] = 0
            self._void.take_from(pairs)

    def _holds(
        self, predicate: Expression, stores: tuple[str, ...], pairs: HopPairs, idx: I64
    ) -> npt.NDArray[np.bool_]:
        values = FrameValues(pairs.frame(idx, stores), self._snapshots)
        return evaluate_mask(predicate, values.column, len(values), timezone=self._task.timezone)

    def _charge(self, pairs_by_leg: I64, looks: I64, found_s: float) -> None:
        """Who looks pays: a node by what it looked at, its legs by what they found, or alike if none found anything."""
        hop = self._hop
        found_by_node = np.bincount(hop.leg_node, pairs_by_leg, len(hop.nodes))[hop.leg_node]
        legs_of_node = np.diff(hop.arrays.leg_begin)[hop.leg_node]
        share = np.where(found_by_node > 0, pairs_by_leg / np.maximum(found_by_node, 1), 1 / legs_of_node)
        node_ms = looks * (1e3 * found_s / max(int(looks.sum()), 1))
        ms = np.bincount(hop.leg_query, share * node_ms[hop.leg_node], len(self._queries))
        found = np.bincount(hop.leg_query, pairs_by_leg, len(self._queries))
        for number in np.flatnonzero((ms > 0) | (found > 0)).tolist():
            query = self._queries[number]
            if query not in self._report.void_queries:
                self._report.count(query, Found(pairs=int(found[number]), ms=float(ms[number])), self._task.limits)

    def _hold(self, residual: Residual, pairs: HopPairs) -> None:
        """Only rows that pass everything else come here: SQL lets a predicate guard a later one from failing."""
        bits = pairs.word & residual.masks[pairs.node]
        idx = np.flatnonzero(bits)
        if len(idx) == 0:
            return
        watch = Stopwatch()
        try:
            refused = idx[~self._holds(residual.predicate, residual.stores, pairs, idx)]
        except Exception as error:  # noqa: BLE001 - leg by leg: the selection of one may guard it from failing
            self._hold_apart(residual, pairs, error)
            return
        taken_s = watch.lap()
        legs = count_legs(bits, pairs.node, self._hop.arrays.leg_of_bit, len(self._hop.legs))
        pairs.word[refused] &= ~residual.masks[pairs.node[refused]]
        for number in residual.legs:
            if legs[number]:
                query, share = self._hop.legs[number].leg.query, int(legs[number]) / int(legs.sum())
                self._report.spend((query,), taken_s * share, self._task.limits)

    def _hold_apart(self, residual: Residual, pairs: HopPairs, error: Exception) -> None:
        for number in residual.legs:
            leg = self._hop.legs[number]
            bit = np.uint64(1 << leg.bit)
            idx = np.flatnonzero((pairs.node == self._hop.leg_node[number]) & ((pairs.word & bit) != 0))
            if leg.leg.query in self._report.void_queries:
                continue
            with (
                self._report.charging({leg.leg.query}),
                self._report.working_for((leg.leg.query,), self._task.limits),
            ):
                if len(residual.legs) == 1:
                    raise error  # As it did, on the same pairs.
                refused = idx[~self._holds(residual.predicate, residual.stores, pairs, idx)]
                pairs.word[refused] &= ~bit
