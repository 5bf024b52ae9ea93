"""A last step without its joined rows: every walked row is handed on once, with the run of rows that it meets (D4).

Stands beside `ProbeOperator` for legs whose emit is factorized, and sees what it sees: the same buckets, selections,
bounds and first batches. Entries that cannot be folded, because a value fails on some row or because two keys have one
code, are left to it: there the joined rows are built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import EvaluationError
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate import evaluate
from dovetail.kernels.fold_runs import Runs, TimeIntervals, accepted_times, entries_of_runs, find_runs
from dovetail.kernels.gather_rows import make_refs
from dovetail.kernels.hash_keys import is_exact_type
from dovetail.kernels.match_pairs import ALL_PASS, NO_LOWER, NO_UPPER, NONE_PASS
from dovetail.plan.factorization import Factorization, FoldedSide
from dovetail.plan.probe_tree import Emit, ProbeStep, member_name
from dovetail.plan.store_plan import ROW
from dovetail.query.expression import Expression, rename_relations
from dovetail.runtime.foldable_rows import FoldableRows
from dovetail.runtime.frame import Frame, FrameValues
from dovetail.runtime.partial import Partial
from dovetail.runtime.route_entries import EntryChoice
from dovetail.runtime.snapshot import StoreSnapshot

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StoredPart:
    """Entries of one bucket; the leg's selection bit lies at `place`."""

    ordinal: int
    choice: EntryChoice
    place: int


@dataclass(frozen=True)
class FoldedFrame:
    """Walked rows, each with a run of folded ones that is not empty. References of folded members say nothing.

    `arguments` are the output columns that are values of folded rows, as `folded` knows them.
    """

    frame: Frame
    folded: FoldableRows
    runs: Runs
    arguments: Mapping[str, Expression]

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def multiplicities(self) -> I64:
        """Per walked row, how many joined rows it stands for."""
        return self.runs.lengths

    def counts(self, names: Iterable[str]) -> I64:
        """Per walked row, in how many of its joined rows these folded columns are all there."""
        return self.folded.counts(tuple(self.arguments[name] for name in names), self.runs)

    def sums(self, name: str) -> pa.ListArray:
        return self.folded.sums(self.arguments[name], self.runs)

    def extremes(self, name: str, *, is_max: bool) -> pa.Array:
        return self.folded.extremes(self.arguments[name], self.runs, is_max=is_max)

    def take(self, idx: I64) -> FoldedFrame:
        return replace(self, frame=self.frame.take(idx), runs=self.runs.take(idx))


Found = tuple[StoredPart, FoldedFrame]


@dataclass(frozen=True)
class Walk:
    """What a factorized emit asks of the step to `member`: `idx` are the probing rows that its leg still wants.

    `lower` and `upper` bound stored time minus the time of each member in `times`.
    """

    step: ProbeStep
    member: int
    emit: Emit
    partial: Partial
    idx: I64
    times: I64
    lower: I64
    upper: I64

    @cached_property
    def side(self) -> FoldedSide:
        return self.factorization.side

    @property
    def factorization(self) -> Factorization:
        if self.emit.factorization is None:
            raise ValueError("only a factorized emit is folded")
        return self.emit.factorization

    @cached_property
    def arguments(self) -> dict[str, Expression]:
        """The folded output columns; of stored rows as every step to their store knows them."""
        found = {each.name: each.expression for each in self.emit.output if each.name in self.factorization.folded}
        if self.side is FoldedSide.PROBING:
            return found
        return {name: rename_relations(each, {member_name(self.member): ROW}) for name, each in found.items()}

    @cached_property
    def codes(self) -> U64:
        return self.partial.codes[self.idx]

    @cached_property
    def timed_members(self) -> list[int]:
        """The members, by their places in `times`, that have a bound."""
        is_timed = (self.lower != NO_LOWER) | (self.upper != NO_UPPER)
        return [int(place) for place in np.flatnonzero(is_timed)]

    @cached_property
    def intervals(self) -> TimeIntervals | None:
        """The stored times that each probing row accepts; None without bounds."""
        if not self.timed_members:
            return None
        return accepted_times(self.times[:, self.idx], self.lower, self.upper)


class FoldOperator:
    """Folds the parts of a store that a walk meets; what it cannot fold it collects in `unfolded`."""

    def __init__(self, snapshots: Mapping[str, StoreSnapshot], timezone: str) -> None:
        self._snapshots = snapshots
        self._timezone = timezone

    def fold(self, walk: Walk, parts: Iterable[StoredPart], unfolded: list[StoredPart]) -> Iterator[Found]:
        near = [part for part in parts if part.place != NONE_PASS and self._can_meet(walk, part)]
        if len(walk.idx) == 0 or not near:
            return
        if walk.side is FoldedSide.STORED:
            yield from self._fold_stored(walk, near, unfolded)
        else:
            yield from self._fold_probing(walk, near, unfolded)

    def _can_meet(self, walk: Walk, part: StoredPart) -> bool:
        """Whether some probing row accepts a time that the bucket's rows may have."""
        if walk.intervals is None:
            return True
        meta = self._snapshots[walk.step.target].metas[part.ordinal]
        if meta.min_time_us is None or meta.max_time_us is None or len(walk.idx) == 0:
            return False
        meets = (walk.intervals.lowest <= meta.max_time_us) & (walk.intervals.highest >= meta.min_time_us)
        return bool(meets.any())

    def _fold_stored(self, walk: Walk, parts: list[StoredPart], unfolded: list[StoredPart]) -> Iterator[Found]:
        """Probing rows are walked; each bucket's rows are folded."""
        snapshot = self._snapshots[walk.step.target]
        keys = self._keys_to_confirm(walk.step.index.keys)
        wanted = (*walk.arguments.values(), *keys)
        for part in parts:
            folded = snapshot.foldable_rows(
                part.ordinal, walk.step.index, part.choice, part.place, is_timed=walk.intervals is not None
            )
            try:
                folded.prepare(wanted, snapshot.bucket_column(part.ordinal, folded.rows), self._timezone)
            except EvaluationError:
                unfolded.append(part)
                continue
            if keys and folded.mixes_keys(keys):
                unfolded.append(part)
                continue
            runs = folded.runs(walk.codes, walk.intervals)
            met = np.flatnonzero(runs.lengths)
            found = FoldedFrame(walk.partial.frame.take(walk.idx[met]), folded, runs.take(met), walk.arguments)
            yield part, self._confirmed(found, keys, walk.step.probe_keys)

    def _fold_probing(self, walk: Walk, parts: list[StoredPart], unfolded: list[StoredPart]) -> Iterator[Found]:
        """Stored rows of codes that probe are walked; the probing rows are folded, once for all buckets."""
        keys = self._keys_to_confirm(walk.step.probe_keys)
        try:
            folded = self._probing_rows(walk, keys)
        except EvaluationError:
            unfolded += parts
            return
        if keys and folded.mixes_keys(keys):
            unfolded += parts
            return
        stored_keys = tuple(rename_relations(key, {ROW: member_name(walk.member)}) for key in walk.step.index.keys)
        distinct = walk.codes[np.flatnonzero(np.diff(walk.codes, prepend=~walk.codes[:1]))]
        for part in parts:
            yield part, self._confirmed(self._walk_stored(walk, part, folded, distinct), keys, stored_keys)

    def _probing_rows(self, walk: Walk, keys: tuple[Expression, ...]) -> FoldableRows:
        times = walk.times[walk.timed_members[0]][walk.idx] if walk.timed_members else None
        folded = FoldableRows(walk.codes, times, walk.idx)
        values = FrameValues(walk.partial.frame.take(folded.rows), self._snapshots)
        folded.prepare((*walk.arguments.values(), *keys), values.column, self._timezone)
        return folded

    def _walk_stored(self, walk: Walk, part: StoredPart, folded: FoldableRows, distinct: U64) -> FoldedFrame:
        snapshot = self._snapshots[walk.step.target]
        entries = snapshot.entries(part.ordinal, walk.step.index, part.choice)
        idx = entries_of_runs(find_runs(distinct, entries.codes))
        if part.place != ALL_PASS:
            idx = idx[entries.pass_mask(part.place)[idx]]
        intervals = None
        if walk.timed_members:
            (member,) = walk.timed_members
            low, high = walk.lower[member], walk.upper[member]
            lower = NO_LOWER if high == NO_UPPER else -high
            upper = NO_UPPER if low == NO_LOWER else -low
            times = entries.times(snapshot.event_time)[idx].reshape(1, -1)
            intervals = accepted_times(times, np.array([lower]), np.array([upper]))
        runs = folded.runs(entries.codes[idx], intervals)
        met = np.flatnonzero(runs.lengths)
        refs = make_refs(part.ordinal, entries.rows[idx[met]])
        nothing = np.zeros(len(refs), np.uint64)
        stores = (*walk.partial.frame.stores, walk.step.target)
        frame = Frame(stores, (*(nothing for _ in walk.partial.frame.stores), refs))
        return FoldedFrame(frame, folded, runs.take(met), walk.arguments)

    def _keys_to_confirm(self, keys: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """Keys whose equal codes do not prove that they are equal; none when they do."""
        is_exact = len(keys) == 1 and is_exact_type(arrow_type(keys[0].type, self._timezone))
        return () if is_exact else keys

    def _confirmed(
        self, found: FoldedFrame, folded_keys: tuple[Expression, ...], walked_keys: tuple[Expression, ...]
    ) -> FoldedFrame:
        """Without walked rows whose key is another than that of their run."""
        if not folded_keys or len(found) == 0:
            return found
        values = FrameValues(found.frame, self._snapshots)
        walked = [evaluate(key, values.column, len(found), timezone=self._timezone) for key in walked_keys]
        is_equal = found.folded.have_keys(folded_keys, walked, found.runs)
        if is_equal.all():
            return found
        return found.take(np.flatnonzero(is_equal))
