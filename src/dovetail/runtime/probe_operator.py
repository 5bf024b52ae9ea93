"""Probing one node: match under the loosest demands of its queries, then check each query's own.

The pairs of a step are found once for all queries that take it. What differs between queries (selection, time
bounds, residual predicates, first batch) is a mask per leg; masks that several legs ask for are made once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import EvaluationError
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate import evaluate, evaluate_mask
from dovetail.kernels.hash_keys import first_code_of_group, hash_keys, is_exact_type
from dovetail.kernels.match_keys import NULL_TIME, TimeIntervals, match_keys
from dovetail.kernels.select_rows import Mask
from dovetail.plan.probe_tree import Emit, Leg, MemberBound, ProbeNode, member_name
from dovetail.plan.store_plan import ROW
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import Call, Expression, all_of, rename_relations
from dovetail.query.types import BOOLEAN
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.frame import FrameValues
from dovetail.runtime.partial import Partial
from dovetail.runtime.report import StepCount, TaskReport
from dovetail.runtime.result_writer import ResultWriter, unique_names
from dovetail.runtime.snapshot import StoreSnapshot

I64 = npt.NDArray[np.int64]
SendOn = Callable[[Partial], None]
_NO_LOWER, _NO_UPPER = NULL_TIME + 1, np.iinfo(np.int64).max


class ProbeOperator:
    """Probes nodes of one hop in one partition; answers go to the writer, longer partial results to `send_on`."""

    def __init__(
        self,
        task: BatchTask,
        partition: int,
        snapshots: Mapping[str, StoreSnapshot],
        writer: ResultWriter,
        report: TaskReport,
        send_on: SendOn,
    ) -> None:
        self._task = task
        self._snapshots = snapshots
        self._writer = writer
        self._report = report
        self._send_on = send_on
        self._complete_from = dict(task.plan.complete_from_by_query)
        placement = task.plan.placement
        self.code_ranges = [
            (first_code_of_group(lower, placement.group_count), first_code_of_group(upper, placement.group_count))
            for lower, upper in placement.group_ranges(partition)
        ]

    def probe(self, node: ProbeNode, partial: Partial, hop: int) -> None:
        """All results that `partial` (sorted by code) finds at `node`."""
        if len(partial.codes) == 0:
            return
        count = StepCount(node.id, hop, len(partial.codes), 0)
        self._report.steps.append(count)
        try:
            for matched, leg_masks in self._matches(node, partial):
                count.matched_rows += len(matched)
                self._check_legs(node, matched, leg_masks)
        except EvaluationError as error:
            self._report.fail({leg.query for leg in node.legs}, error)

    def _matches(self, node: ProbeNode, partial: Partial) -> Iterator[tuple[FrameValues, list[Mask | None]]]:
        snapshot = self._snapshots[node.step.target]
        probing = FrameValues(partial.frame, self._snapshots)
        intervals = _loosest_intervals(node, probing)
        confirm = self._confirmation(node)
        last = len(snapshot.metas) if node.step.visibility is Visibility.UP_TO_NOW else snapshot.current_from
        first_batch = min(self._complete_from[leg.query] for leg in node.legs)
        for ordinal in range(last):
            if snapshot.metas[ordinal].lower_batch < first_batch:
                continue
            index = snapshot.index(ordinal, node.step.index)
            for lower_code, upper_code in self.code_ranges:
                stored = slice_of_codes(index.codes, lower_code, upper_code)
                codes, rows = index.codes[stored], index.rows[stored]
                times = None
                if intervals is not None:
                    bucket_times = snapshot.times_of_bucket(ordinal)
                    times = None if bucket_times is None else bucket_times[rows]
                for pairs in match_keys(partial.codes, codes, intervals, times, max_pairs=self._task.max_pairs):
                    refs = snapshot.refs(ordinal, rows[pairs.stored_idx])
                    frame = partial.frame.take(pairs.probe_idx).joined(node.step.target, refs)
                    masks = [None if mask is None else mask[pairs.probe_idx] for mask in partial.leg_masks]
                    yield self._confirmed(FrameValues(frame, self._snapshots), masks, confirm)

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
        self, values: FrameValues, masks: list[Mask | None], confirm: Expression | None
    ) -> tuple[FrameValues, list[Mask | None]]:
        if confirm is None:
            return values, masks
        equal = evaluate_mask(confirm, values.column, len(values), timezone=self._task.timezone)
        if equal.all():
            return values, masks
        idx = np.flatnonzero(equal)
        return values.take(idx), [None if mask is None else mask[idx] for mask in masks]

    def _check_legs(self, node: ProbeNode, values: FrameValues, leg_masks: list[Mask | None]) -> None:
        shared = _SharedMasks(values, node)
        emit_by_leg = {(emit.query, emit.start): emit for emit in node.emits}
        kept_by_leg: dict[tuple[str, int], I64] = {}
        for leg, mask in zip(node.legs, leg_masks, strict=True):
            if leg.query in self._report.failed_queries:
                continue
            try:
                idx = self._leg_rows(leg, mask, values, shared)
                if (leg.query, leg.start) in emit_by_leg:
                    self._emit(emit_by_leg[leg.query, leg.start], values, idx)
                else:
                    kept_by_leg[leg.query, leg.start] = idx
            except EvaluationError as error:
                self._report.fail({leg.query}, error)
        for child in node.children:
            self._pass_on(child, values, kept_by_leg)

    def _leg_rows(self, leg: Leg, mask: Mask | None, values: FrameValues, shared: _SharedMasks) -> I64:
        """The rows that satisfy everything the leg asks at this node."""
        for other in (
            shared.passes(leg.selection),
            shared.from_batch(self._complete_from[leg.query]),
            *(shared.within(bound) for bound in leg.bounds),
        ):
            if other is not None:
                mask = other if mask is None else mask & other
        idx = np.arange(len(values)) if mask is None else np.flatnonzero(mask)
        if leg.residuals and len(idx):
            # Only on rows that pass the rest: SQL lets a predicate guard a later one from failing.
            some = values if len(idx) == len(values) else values.take(idx)
            passed = evaluate_mask(all_of(leg.residuals), some.column, len(idx), timezone=self._task.timezone)
            idx = idx[passed]
        return idx

    def _emit(self, emit: Emit, values: FrameValues, idx: I64) -> None:
        if len(idx) == 0:
            return
        some = values if len(idx) == len(values) else values.take(idx)
        arrays = [
            evaluate(column.expression, some.column, len(idx), timezone=self._task.timezone) for column in emit.output
        ]
        names = unique_names([column.name for column in emit.output])
        self._writer.add(emit.query, pa.RecordBatch.from_arrays(arrays, names))

    def _pass_on(self, child: ProbeNode, values: FrameValues, kept_by_leg: Mapping[tuple[str, int], I64]) -> None:
        wanted = np.zeros(len(values), np.bool_)
        masks: list[Mask] = []
        for leg in child.legs:
            mask = np.zeros(len(values), np.bool_)
            mask[kept_by_leg.get((leg.query, leg.start), np.zeros(0, np.int64))] = True
            wanted |= mask
            masks.append(mask)
        idx = np.flatnonzero(wanted)
        if len(idx) == 0:
            return
        some = values.take(idx)
        try:
            keys = hash_keys(
                [evaluate(key, some.column, len(idx), timezone=self._task.timezone) for key in child.step.probe_keys]
            )
        except EvaluationError as error:
            self._report.fail({leg.query for leg in child.legs}, error)
            return
        leg_masks = tuple(mask[idx] for mask in masks)
        codes, frame = keys.codes, some.frame
        if keys.valid_mask is not None:
            valid = np.flatnonzero(keys.valid_mask)
            codes, frame, leg_masks = codes[valid], frame.take(valid), tuple(mask[valid] for mask in leg_masks)
        if len(codes):
            self._send_on(Partial(child.id, codes, frame, leg_masks))


class _SharedMasks:
    """Masks over the matched rows of one node, by what they test."""

    def __init__(self, values: FrameValues, node: ProbeNode) -> None:
        self._values = values
        self._member = node.member
        self._mask_by_test: dict[object, Mask | None] = {}
        self._loosest = _loosest_bounds(node)

    def passes(self, selection: Expression) -> Mask | None:
        return self._mask(selection, lambda: self._snapshot.passes(selection, self._refs))

    def from_batch(self, batch: int) -> Mask | None:
        return self._mask(batch, lambda: self._snapshot.in_batches_from(batch, self._refs))

    def within(self, bound: MemberBound) -> Mask | None:
        # The match itself already held the loosest bound.
        if self._loosest.get((bound.earlier, bound.later)) == bound.upper_us:
            return None
        return self._mask(bound, lambda: self._values.within(bound))

    @property
    def _snapshot(self) -> StoreSnapshot:
        return self._values.snapshot(self._member)

    @property
    def _refs(self) -> npt.NDArray[np.uint64]:
        return self._values.frame.refs[self._member]

    def _mask(self, test: object, make: Callable[[], Mask | None]) -> Mask | None:
        if test not in self._mask_by_test:
            self._mask_by_test[test] = make()
        return self._mask_by_test[test]


def slice_of_codes(codes: npt.NDArray[np.uint64], lower_code: int, upper_code: int) -> slice:
    """The entries with lower_code <= code < upper_code; the upper end of all codes does not fit in 64 bits."""
    begin = int(np.searchsorted(codes, np.uint64(lower_code))) if lower_code else 0
    end = int(np.searchsorted(codes, np.uint64(upper_code))) if upper_code < 1 << 64 else len(codes)
    return slice(begin, end)


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
    lower = np.full(len(probing), _NO_LOWER, np.int64)
    upper = np.full(len(probing), _NO_UPPER, np.int64)
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
