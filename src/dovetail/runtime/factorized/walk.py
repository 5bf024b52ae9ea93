"""What a factorized leg walks, and what it finds: rows, each with a run of rows of the other side (D4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.fold.fold_runs import Runs, TimeIntervals, accepted_times
from dovetail.kernels.match.match_pairs import ProbeRows
from dovetail.kernels.match.special_values import NO_LOWER, NO_UPPER
from dovetail.kernels.word_bits import WORD_BITS, bit_at, has_bit
from dovetail.plan.factorization import Factorization, FoldedSide
from dovetail.plan.probe_tree import Emit, ProbeStep, member_name
from dovetail.plan.store_plan import ROW
from dovetail.query.expression import Expression, rename_relations
from dovetail.runtime.factorized.foldable_rows import FoldableRows
from dovetail.runtime.probe.frame import Frame
from dovetail.runtime.probe.probe import Probe
from dovetail.runtime.probe.route_entries import EntryChoice

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StoredPart:
    """Entries of one bucket; the leg's selection bit lies at `place`."""

    ordinal: int
    choice: EntryChoice
    place: int


@dataclass(frozen=True)
class WalkedRows:
    """Each has a run of folded rows that is not empty. References of folded members say nothing.

    `arguments` are the output columns that are values of folded rows, as `folded` knows them. `stored_share` of the
    part's rows that could be met passed the leg's selection.
    """

    frame: Frame
    folded: FoldableRows
    runs: Runs
    arguments: Mapping[str, Expression]
    stored_share: float = 1.0

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def weights(self) -> I64:
        """How many joined rows each stands for."""
        return self.runs.lengths

    def counts(self, names: Iterable[str]) -> I64:
        """In how many of its joined rows these folded columns are all there."""
        return self.folded.counts(tuple(self.arguments[name] for name in names), self.runs)

    def sums(self, name: str) -> pa.ListArray:
        return self.folded.sums(self.arguments[name], self.runs)

    def extremes(self, name: str, *, is_max: bool) -> pa.Array:
        return self.folded.extremes(self.arguments[name], self.runs, is_max=is_max)

    def take(self, idx: I64) -> WalkedRows:
        return replace(self, frame=self.frame.take(idx), runs=self.runs.take(idx))


@dataclass(frozen=True)
class Walk:
    """A probe as the leg at `place`, whose emit is factorized, asks for it."""

    probe: Probe
    place: int
    emit: Emit

    @property
    def factorization(self) -> Factorization:
        if self.emit.factorization is None:
            raise ValueError("only a factorized emit is folded")
        return self.emit.factorization

    @property
    def step(self) -> ProbeStep:
        return self.probe.node.step

    @cached_property
    def last(self) -> str:
        """The stored member's name."""
        return member_name(self.probe.node.member)

    @cached_property
    def idx(self) -> I64:
        """The probing rows that the leg wants."""
        return np.flatnonzero(has_bit(self.probe.rows.bits[self.place // WORD_BITS], self.place))

    @cached_property
    def codes(self) -> U64:
        return self.probe.rows.codes[self.idx]

    @cached_property
    def frame(self) -> Frame:
        return self.probe.partial.frame

    @cached_property
    def arguments(self) -> dict[str, Expression]:
        """The folded output columns; of stored rows as every step to their store knows them."""
        found = {each.name: each.expression for each in self.emit.output if each.name in self.factorization.folded}
        if self.factorization.side is FoldedSide.PROBING:
            return found
        return {name: rename_relations(each, {self.last: ROW}) for name, each in found.items()}

    @cached_property
    def timed_members(self) -> list[int]:
        """The members, by their places among the probing rows' times, that have a bound."""
        lower, upper = self.probe.bounds.lower[self.place], self.probe.bounds.upper[self.place]
        return [int(member) for member in np.flatnonzero((lower != NO_LOWER) | (upper != NO_UPPER))]

    @cached_property
    def accepted_stored(self) -> TimeIntervals | None:
        """The stored times that each probing row accepts; None without bounds."""
        if not self.timed_members:
            return None
        bounds = self.probe.bounds
        return accepted_times(self.probe.rows.times[:, self.idx], bounds.lower[self.place], bounds.upper[self.place])

    @cached_property
    def probing_times(self) -> I64 | None:
        """Of the one member that a bound speaks of; None without bounds."""
        return self.probe.rows.times[self.timed_members[0]][self.idx] if self.timed_members else None

    def accepted_probing(self, stored_times: I64) -> TimeIntervals:
        """The other way round: the times of that member that rows of these stored times accept."""
        (member,) = self.timed_members
        lower, upper = self.probe.bounds.lower[self.place, member], self.probe.bounds.upper[self.place, member]
        turned_lower = NO_LOWER if upper == NO_UPPER else -upper
        turned_upper = NO_UPPER if lower == NO_LOWER else -lower
        return accepted_times(
            stored_times.reshape(1, -1), np.array([turned_lower], np.int64), np.array([turned_upper], np.int64)
        )

    def alone(self) -> Probe:
        """The probe for this leg only, as it is joined where it cannot be folded."""
        rows = self.probe.rows
        bits = np.zeros_like(rows.bits)
        bits[self.place // WORD_BITS][self.idx] = bit_at(self.place)
        return replace(self.probe, rows=ProbeRows(rows.codes, bits, rows.times))
