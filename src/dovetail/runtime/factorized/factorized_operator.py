"""A last step without its joined rows: every walked row is handed on once, weighted by the rows that it meets (D4).

Stands beside `ProbeOperator` for legs whose emit is factorized, and sees what it sees: the same buckets, selections,
bounds and first batches. Entries that cannot be folded, because a value fails on some row or because two keys have one
code, are left to it: there the joined rows are built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.core.errors import charged
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.kernels.fold.fold_runs import entries_of_runs, find_runs
from dovetail.kernels.gather_rows import make_refs
from dovetail.kernels.match.hash_keys import is_exact_type
from dovetail.kernels.match.special_values import ALL_PASS, NONE_PASS
from dovetail.plan.factorization import FoldedSide
from dovetail.plan.group_plan import GroupPlan
from dovetail.plan.probe_tree import Emit
from dovetail.plan.query_limits import Found
from dovetail.plan.store_plan import ROW
from dovetail.query.expression import Expression, rename_relations
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.factorized.foldable_rows import FoldableRows
from dovetail.runtime.factorized.walk import StoredPart, Walk, WalkedRows
from dovetail.runtime.factorized.weigh_rows import WeighedRows, joined_rows, weigh_rows
from dovetail.runtime.groups.folder import ROWS_A_FOLD, GroupFolder
from dovetail.runtime.probe.frame import Frame, FrameValues
from dovetail.runtime.probe.probe import BucketEntries, Probe
from dovetail.runtime.probe.snapshot import StoreSnapshot
from dovetail.runtime.report import TaskReport, UnitWork

U64 = npt.NDArray[np.uint64]
Keys = tuple[Expression, ...]
FoundInPart = tuple[StoredPart, WalkedRows]


@dataclass
class _Seen:
    """Over the factorized legs of a probe: rows they want, pairs these stand for, and pairs whatever selections say."""

    wanted_rows: int = 0
    matched_rows: int = 0
    near_rows: float = 0.0


class FactorizedOperator:
    """Folds for all factorized emits of a task; weighted rows go to their groups."""

    def __init__(
        self,
        task: BatchTask,
        snapshots: Mapping[str, StoreSnapshot],
        groups: GroupFolder,
        report: TaskReport,
        work: UnitWork,
    ) -> None:
        self._task = task
        self._snapshots = snapshots
        self._groups = groups
        self._report = report
        self._work = work

    def fold_legs(self, probe: Probe, stored: Sequence[BucketEntries]) -> list[tuple[Probe, list[BucketEntries]]]:
        """Hand on what factorized legs ask for, and take their bits; what is left to be joined for them."""
        emit_by_leg = {(emit.query, emit.start): emit for emit in probe.node.emits if emit.factorization}
        if not emit_by_leg:
            return []
        places = [place for place, leg in enumerate(probe.node.legs) if (leg.query, leg.start) in emit_by_leg]
        left, seen = [], _Seen()
        for place in places:
            leg = probe.node.legs[place]
            walk = Walk(probe, place, emit_by_leg[leg.query, leg.start])
            seen.wanted_rows += len(walk.idx)
            unfolded = self._fold_leg(walk, stored, seen)
            if unfolded:
                left.append((walk.alone(), unfolded))
        probe.rows.stop(places)
        _count(probe, seen)
        return left

    def _fold_leg(self, walk: Walk, stored: Sequence[BucketEntries], seen: _Seen) -> list[BucketEntries]:
        """What could not be folded."""
        query, places = walk.emit.query, walk.probe.selections.place[walk.place]
        parts = [StoredPart(ordinal, choice, int(places[ordinal])) for ordinal, choice in stored]
        parts = [part for part in parts if part.place != NONE_PASS and self._can_meet(walk, part)]
        group = self._task.plan.group(query)
        unfolded: list[StoredPart] = []
        is_stored_folded = walk.factorization.side is FoldedSide.STORED
        fold = self._fold_stored if is_stored_folded else self._fold_probing
        weighed: list[WeighedRows] = []
        for part, found in fold(walk, parts, unfolded):
            matched_rows = int(found.weights.sum())
            seen.matched_rows += matched_rows
            seen.near_rows += matched_rows / found.stored_share
            self._work.pairs += len(found)
            if not self._report.count(query, Found(pairs=len(found)), self._task.limits):
                return []
            try:
                weighed.append(weigh_rows(walk.emit, group, found, self._snapshots, self._task.timezone))
            except Exception as error:  # noqa: BLE001 - joined row by row, who asks for it is known
                charged(error)
                unfolded.append(part)
                continue
            if sum(len(each.weights) for each in weighed) >= ROWS_A_FOLD:
                self._hand_on(walk.emit, group, weighed)
                weighed = []
        self._hand_on(walk.emit, group, weighed)
        return [(part.ordinal, part.choice) for part in unfolded]

    def _hand_on(self, emit: Emit, group: GroupPlan, weighed: Sequence[WeighedRows]) -> None:
        """Those of all buckets together: a few rows of each take as long as all of them at once."""
        if weighed:
            self._groups.add_rows(group, joined_rows(emit, weighed, self._snapshots, self._task.timezone))

    def _can_meet(self, walk: Walk, part: StoredPart) -> bool:
        """Whether some probing row accepts a time that the bucket's rows may have."""
        if walk.accepted_stored is None:
            return len(walk.idx) > 0
        meta = self._snapshots[walk.step.target].metas[part.ordinal]
        if meta.min_time_us is None or meta.max_time_us is None:
            return False
        accepted = walk.accepted_stored
        return bool(((accepted.lowest <= meta.max_time_us) & (accepted.highest >= meta.min_time_us)).any())

    def _fold_stored(self, walk: Walk, parts: list[StoredPart], unfolded: list[StoredPart]) -> Iterator[FoundInPart]:
        """Probing rows are walked; each bucket's rows are folded."""
        snapshot = self._snapshots[walk.step.target]
        keys = self._keys_to_confirm(walk.step.index.keys)
        is_timed = walk.accepted_stored is not None
        for part in parts:
            entries = snapshot.entries(part.ordinal, walk.step.index, part.choice)
            folded = snapshot.foldable_rows(part.ordinal, walk.step.index, part.choice, part.place, is_timed=is_timed)
            if len(folded) == 0:
                continue
            try:
                column_of = snapshot.bucket_column(part.ordinal, folded.rows)
                folded.prepare((*walk.arguments.values(), *keys), column_of, self._task.timezone)
            except Exception as error:  # noqa: BLE001 - joined row by row, who asks for it is known
                charged(error)
                unfolded.append(part)
                continue
            if keys and folded.mixes_keys(keys):
                unfolded.append(part)
                continue
            runs = folded.runs(walk.codes, walk.accepted_stored)
            met = np.flatnonzero(runs.lengths)
            share = len(folded) / len(entries.codes)
            found = WalkedRows(walk.frame.take(walk.idx[met]), folded, runs.take(met), walk.arguments, share)
            yield part, self._confirmed(found, keys, walk.step.probe_keys)

    def _fold_probing(self, walk: Walk, parts: list[StoredPart], unfolded: list[StoredPart]) -> Iterator[FoundInPart]:
        """Stored rows of codes that probe are walked; the probing rows are folded, once for all buckets."""
        keys = self._keys_to_confirm(walk.step.probe_keys)
        folded = FoldableRows(walk.codes, walk.probing_times, walk.idx)
        try:
            values = FrameValues(walk.frame.take(folded.rows), self._snapshots)
            folded.prepare((*walk.arguments.values(), *keys), values.column, self._task.timezone)
        except Exception as error:  # noqa: BLE001 - joined row by row, who asks for it is known
            charged(error)
            unfolded += parts
            return
        if keys and folded.mixes_keys(keys):
            unfolded += parts
            return
        stored_keys = tuple(rename_relations(key, {ROW: walk.last}) for key in walk.step.index.keys)
        distinct = walk.codes[np.flatnonzero(np.diff(walk.codes, prepend=~walk.codes[:1]))]
        for part in parts:
            yield part, self._confirmed(self._walk_stored(walk, part, folded, distinct), keys, stored_keys)

    def _walk_stored(self, walk: Walk, part: StoredPart, folded: FoldableRows, distinct: U64) -> WalkedRows:
        snapshot = self._snapshots[walk.step.target]
        entries = snapshot.entries(part.ordinal, walk.step.index, part.choice)
        touched = entries_of_runs(find_runs(distinct, entries.codes))
        idx = touched if part.place == ALL_PASS else touched[entries.pass_mask(part.place)[touched]]
        accepted = walk.accepted_probing(entries.times(snapshot.event_time)[idx]) if walk.timed_members else None
        runs = folded.runs(entries.codes[idx], accepted)
        met = np.flatnonzero(runs.lengths)
        refs = make_refs(part.ordinal, entries.rows[idx[met]])
        nothing = np.zeros(len(refs), np.uint64)
        frame = Frame((*walk.frame.stores, walk.step.target), (*(nothing for _ in walk.frame.stores), refs))
        share = len(idx) / len(touched) if len(idx) else 1.0
        return WalkedRows(frame, folded, runs.take(met), walk.arguments, share)

    def _keys_to_confirm(self, keys: Keys) -> Keys:
        """Keys whose equal codes do not prove that they are equal; none when they do."""
        is_exact = len(keys) == 1 and is_exact_type(arrow_type(keys[0].type, self._task.timezone))
        return () if is_exact else keys

    def _confirmed(self, found: WalkedRows, folded_keys: Keys, walked_keys: Keys) -> WalkedRows:
        """Without walked rows whose key is another than that of their run."""
        if not folded_keys or len(found) == 0:
            return found
        values = FrameValues(found.frame, self._snapshots)
        walked = [evaluate(key, values.column, len(found), timezone=self._task.timezone) for key in walked_keys]
        is_equal = found.folded.have_keys(folded_keys, walked, found.runs)
        return found if is_equal.all() else found.take(np.flatnonzero(is_equal))


def _count(probe: Probe, seen: _Seen) -> None:
    """What statistics learn of the step: from pairs, where other legs join them, else from the runs."""
    joining = np.bitwise_or.reduce(probe.rows.bits)
    if joining.any():
        probe.count.wanted_rows = int(np.count_nonzero(joining))
    elif seen.wanted_rows:
        # Legs that want the same rows stand for the same pairs.
        share = probe.count.wanted_rows / seen.wanted_rows
        probe.count.matched_rows += round(seen.matched_rows * share)
        probe.count.near_rows += round(seen.near_rows * share)
