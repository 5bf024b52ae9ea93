"""Probing one node: match under the loosest demands of its queries, then decide each query's own in one pass.

The pairs of a step are found once for all queries that take it. What differs between queries (selection, time
bounds, first batch) is a bit per leg; residual predicates are evaluated last, on the rows a leg still wants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.core.errors import EvaluationError
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.check_legs import (
    LEGS_PER_WORD,
    NO_LOWER,
    NO_UPPER,
    LegBounds,
    SelectionBits,
    bits_of_pairs,
    rows_of_legs,
)
from dovetail.kernels.evaluate import evaluate, evaluate_mask
from dovetail.kernels.hash_keys import codes_of_groups, hash_keys, is_exact_type
from dovetail.kernels.match_keys import NO_TIMES, NULL_TIME, TimeIntervals, match_keys
from dovetail.plan.probe_tree import Leg, ProbeNode, member_name
from dovetail.plan.store_plan import ROW
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import Call, Expression, all_of, rename_relations
from dovetail.query.types import BOOLEAN
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.frame import Frame, FrameValues
from dovetail.runtime.partial import Partial
from dovetail.runtime.report import StepCount, TaskReport
from dovetail.runtime.result_sink import ResultSink
from dovetail.runtime.snapshot import StoreSnapshot
from dovetail.store.bucket_file import BucketMeta

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
SendOn = Callable[[Partial], None]
LegKey = tuple[str, int]
_WORTH_A_COPY = 0.8
"""Leaving probe rows out of a match pays for the copy only if enough of them go."""


@dataclass(frozen=True)
class _Checks:
    """What a word of legs asks of a pair."""

    legs: tuple[Leg, ...]
    probe_bits: U64
    selections: SelectionBits
    bounds: LegBounds | None


class ProbeOperator:
    """Probes nodes of one hop in one partition; answers go to the sink, longer partial results to `send_on`."""

    def __init__(
        self,
        task: BatchTask,
        partition: int,
        snapshots: Mapping[str, StoreSnapshot],
        sink: ResultSink,
        report: TaskReport,
        send_on: SendOn,
    ) -> None:
        self._task = task
        self._snapshots = snapshots
        self._sink = sink
        self._report = report
        self._send_on = send_on
        self._complete_from = dict(task.plan.complete_from_by_query)
        placement = task.plan.placement
        self.code_ranges = [
            codes_of_groups(lower, upper, placement.group_count) for lower, upper in placement.group_ranges(partition)
        ]

    def probe(self, node: ProbeNode, partial: Partial, hop: int) -> None:
        """All results that `partial` (sorted by code) finds at `node`."""
        if len(partial.codes) == 0:
            return
        count = StepCount(node.id, hop, len(partial.codes), 0)
        self._report.steps.append(count)
        try:
            probing = FrameValues(partial.frame, self._snapshots)
            checks = self._checks(node, partial, probing)
            for frame, probe_idx, times in self._matches(node, partial, probing):
                count.matched_rows += len(frame)
                self._decide(node, frame, probe_idx, times, checks)
        except EvaluationError as error:
            self._report.fail({leg.query for leg in node.legs}, error)

    def selection_bits(self, store: str, legs: tuple[Leg, ...]) -> SelectionBits:
        """Where these legs' selections on rows of `store` are decided; one that fails fails its queries."""

        def on_failure(selection: Expression, error: EvaluationError) -> None:
            self._report.fail({leg.query for leg in legs if leg.selection == selection}, error)

        first_batches = [self._complete_from[leg.query] for leg in legs]
        return self._snapshots[store].selection_bits([leg.selection for leg in legs], first_batches, on_failure)

    def _checks(self, node: ProbeNode, partial: Partial, probing: FrameValues) -> list[_Checks]:
        checks = []
        loosest = _loosest_bounds(node)
        for word, probe_bits in enumerate(partial.bits):
            legs = node.legs[word * LEGS_PER_WORD : (word + 1) * LEGS_PER_WORD]
            bounds = _leg_bounds(node.member, legs, loosest, probing)
            checks.append(_Checks(legs, probe_bits, self.selection_bits(node.step.target, legs), bounds))
        return checks

    def _matches(self, node: ProbeNode, partial: Partial, probing: FrameValues) -> Iterator[tuple[Frame, I64, I64]]:
        """Matched frames, the probe row of each, and the stored row's time where any leg asks for it."""
        snapshot = self._snapshots[node.step.target]
        intervals = _loosest_intervals(node, probing)
        needs_times = any(leg.bounds for leg in node.legs)
        confirm = self._confirmation(node)
        last = len(snapshot.metas) if node.step.visibility is Visibility.UP_TO_NOW else snapshot.current_from
        first_batch = min(self._complete_from[leg.query] for leg in node.legs)
        for ordinal in range(last):
            meta = snapshot.metas[ordinal]
            if meta.lower_batch < first_batch:
                continue
            probing_idx, near = _near(intervals, meta)
            if probing_idx is not None and len(probing_idx) == 0:
                continue
            probe_codes = partial.codes if probing_idx is None else partial.codes[probing_idx]
            for codes in self.code_ranges:
                entries = snapshot.entries(ordinal, node.step.index, codes)
                times = entries.times(snapshot.event_time) if needs_times else None
                for pairs in match_keys(probe_codes, entries.codes, near, times, max_pairs=self._task.max_pairs):
                    probe_idx = pairs.probe_idx if probing_idx is None else probing_idx[pairs.probe_idx]
                    refs = entries.refs[pairs.stored_idx]
                    frame = partial.frame.take(probe_idx).joined(node.step.target, refs)
                    stored_times = NO_TIMES if times is None else times[pairs.stored_idx]
                    yield self._confirmed(frame, probe_idx, stored_times, confirm)

    def _confirmation(self, node: ProbeNode) -> Expression | None:
        """What must be evaluated because equal codes do not prove equal keys; None when they do."""
        keys = node.step.index.keys
        if len(keys) == 1 and is_exact_type(arrow_type(keys[0].type, self._task.timezone)):
            return None
        equalities = tuple(
            Call("eq", (probe, rename_relations(stored, {ROW: member_name(node.member)})), BOOLEAN)
            for probe, stored in zip(node.step.probe_keys, keys, strict=True)
        )
        return all_of(equalities)

    def _confirmed(
        self, frame: Frame, probe_idx: I64, times: I64, confirm: Expression | None
    ) -> tuple[Frame, I64, I64]:
        if confirm is None:
            return frame, probe_idx, times
        values = FrameValues(frame, self._snapshots)
        equal = evaluate_mask(confirm, values.column, len(frame), timezone=self._task.timezone)
        if equal.all():
            return frame, probe_idx, times
        idx = np.flatnonzero(equal)
        return frame.take(idx), probe_idx[idx], times[idx] if len(times) else times

    def _decide(self, node: ProbeNode, frame: Frame, probe_idx: I64, times: I64, checks: list[_Checks]) -> None:
        """Give every leg the rows it wants: to the sink, or on to the next probe."""
        emit_by_leg = {(emit.query, emit.start): emit for emit in node.emits}
        kept_by_leg: dict[LegKey, I64] = {}
        for check in checks:
            bits = bits_of_pairs(
                check.probe_bits, probe_idx, frame.refs[node.member], check.selections, check.bounds, times
            )
            for leg, wanted_idx in zip(check.legs, rows_of_legs(bits, len(check.legs)), strict=True):
                if len(wanted_idx) == 0 or leg.query in self._report.failed_queries:
                    continue
                try:
                    idx = self._without_residuals(leg, frame, wanted_idx)
                except EvaluationError as error:
                    self._report.fail({leg.query}, error)
                    continue
                emit = emit_by_leg.get((leg.query, leg.start))
                if emit is None:
                    kept_by_leg[leg.query, leg.start] = idx
                else:
                    self._sink.add(emit, frame if len(idx) == len(frame) else frame.take(idx))
        for child in node.children:
            self._pass_on(child, frame, kept_by_leg)

    def _without_residuals(self, leg: Leg, frame: Frame, idx: I64) -> I64:
        """Only rows that pass everything else come here: SQL lets a predicate guard a later one from failing."""
        if not leg.residuals:
            return idx
        values = FrameValues(frame.take(idx), self._snapshots)
        kept: I64 = idx[evaluate_mask(all_of(leg.residuals), values.column, len(idx), timezone=self._task.timezone)]
        return kept

    def _pass_on(self, child: ProbeNode, frame: Frame, kept_by_leg: Mapping[LegKey, I64]) -> None:
        bits = tuple(np.zeros(len(frame), np.uint64) for _ in range(-(-len(child.legs) // LEGS_PER_WORD)))
        for place, leg in enumerate(child.legs):
            idx = kept_by_leg.get((leg.query, leg.start))
            if idx is not None:
                bits[place // LEGS_PER_WORD][idx] |= np.uint64(1 << (place % LEGS_PER_WORD))
        partial = Partial(child.id, np.zeros(len(frame), np.uint64), frame, bits).wanted()
        if len(partial.frame) == 0:
            return
        values = FrameValues(partial.frame, self._snapshots)
        try:
            keys = hash_keys(
                [
                    evaluate(key, values.column, len(values), timezone=self._task.timezone)
                    for key in child.step.probe_keys
                ]
            )
        except EvaluationError as error:
            self._report.fail({leg.query for leg in child.legs}, error)
            return
        partial = Partial(child.id, keys.codes, partial.frame, partial.bits)
        if keys.valid_mask is not None:
            partial = partial.take(np.flatnonzero(keys.valid_mask))
        if len(partial.codes):
            self._send_on(partial)


def _loosest_bounds(node: ProbeNode) -> dict[tuple[int, int], int]:
    """(earlier, later) -> the largest bound among the legs, only where every leg has one."""
    by_leg = [{(bound.earlier, bound.later): bound.upper_us for bound in leg.bounds} for leg in node.legs]
    loosest = by_leg[0]
    for own in by_leg[1:]:
        loosest = {pair: max(upper, own[pair]) for pair, upper in loosest.items() if pair in own}
    return loosest


def _loosest_intervals(node: ProbeNode, probing: FrameValues) -> TimeIntervals | None:
    """For each probe row the event times of stored rows that some leg could accept."""
    loosest = _loosest_bounds(node)
    if not loosest:
        return None
    lower = np.full(len(probing), NO_LOWER, np.int64)
    upper = np.full(len(probing), NO_UPPER, np.int64)
    for (earlier, later), upper_us in loosest.items():
        other = earlier if later == node.member else later
        times = probing.times(other)
        if later == node.member:
            np.minimum(upper, times + upper_us, out=upper)
        else:
            np.maximum(lower, times - upper_us, out=lower)
        unknown = times == NULL_TIME
        if unknown.any():
            lower[unknown], upper[unknown] = 1, 0
    return TimeIntervals(lower, upper)


def _near(intervals: TimeIntervals | None, meta: BucketMeta) -> tuple[I64 | None, TimeIntervals | None]:
    """The probe rows that can meet rows of the bucket's time range (None: all), and their intervals."""
    if intervals is None or meta.min_time_us is None or meta.max_time_us is None:
        return None, intervals
    near = (intervals.upper >= meta.min_time_us) & (intervals.lower <= meta.max_time_us)
    idx = np.flatnonzero(near)
    if len(idx) > _WORTH_A_COPY * len(near):
        return None, intervals
    return idx, TimeIntervals(intervals.lower[idx], intervals.upper[idx])


def _leg_bounds(
    member: int, legs: tuple[Leg, ...], loosest: dict[tuple[int, int], int], probing: FrameValues
) -> LegBounds | None:
    """The bounds that the match itself did not hold already; None if there are none."""
    tighter = [
        (place, bound)
        for place, leg in enumerate(legs)
        for bound in leg.bounds
        if loosest.get((bound.earlier, bound.later)) != bound.upper_us
    ]
    if not tighter:
        return None
    others = sorted({bound.earlier + bound.later - member for _, bound in tighter})
    lower = np.full((len(legs), len(others)), NO_LOWER, np.int64)
    upper = np.full((len(legs), len(others)), NO_UPPER, np.int64)
    for place, bound in tighter:
        column = others.index(bound.earlier + bound.later - member)
        if bound.later == member:
            upper[place, column] = bound.upper_us
        else:
            lower[place, column] = -bound.upper_us
    return LegBounds(np.stack([probing.times(other) for other in others]), lower, upper)
