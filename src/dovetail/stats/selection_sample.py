"""Which share of a store's rows at least one of several selections wants: a union, which no single shares can tell.

    a row's query-set:   t1 {p, q}   t2 {p}   t3 {}   t4 {q}        p passes 2 of 4, q 2 of 4, p or q 3 of 4

Each batch brings a few rows with one bit per selection (AJoin's query-sets). They are kept by selection, as the bits of
an integer: one OR and one count of bits answer for any set of selections. What single selections pass is counted over
all rows, so the sample only has to say how much they overlap: rows sampled of the union, over the sum of the rows
sampled of each. Of disjoint selections the union is then exactly the sum, however few rows were sampled.

Nothing of this survives a restart: the first batch after it brings a sample again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from dovetail.stats.estimate import Estimate, Origin

SAMPLED_ROWS_A_BATCH = 256
SAMPLED_BATCHES = 4
"""With a quarter of the rows less for each batch of age: the newest batch is 40% of what is answered from."""


@dataclass(frozen=True)
class RowsSampled:
    """Rows of one batch: bit i of a selection says whether row i passes. A selection not here was not tested."""

    rows: int
    passed_by_selection: Mapping[str, int]

    def __post_init__(self) -> None:
        if not 0 <= self.rows <= SAMPLED_ROWS_A_BATCH:
            raise ValueError(f"a batch's sample has 0 to {SAMPLED_ROWS_A_BATCH} rows, not {self.rows}")
        if any(passed < 0 or passed >> self.rows for passed in self.passed_by_selection.values()):
            raise ValueError(f"more bits than the {self.rows} rows that were sampled")


@dataclass(frozen=True, slots=True)
class SelectionRows:
    """One selection: the share of rows that pass, and of the sample the rows that were tested and that passed."""

    share: float
    tested: int
    passed: int


@dataclass(frozen=True)
class SelectionSample:
    """One store's rows; `batches` has the newest first. Older ones count less: only some of their rows are used."""

    batches: tuple[RowsSampled, ...] = ()
    _known: dict[str, tuple[int, int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.batches) > SAMPLED_BATCHES:
            raise ValueError(f"a sample is of at most {SAMPLED_BATCHES} batches, not {len(self.batches)}")

    def folded(self, newest: RowsSampled) -> SelectionSample:
        if newest.rows == 0:
            return self
        return SelectionSample((newest, *self.batches)[:SAMPLED_BATCHES])

    @cached_property
    def used(self) -> int:
        """All rows that count, as bits."""
        return self._joined([(1 << batch.rows) - 1 for batch in self.batches])

    def rows_of(self, selection: str, share: float) -> SelectionRows:
        """`share` is the selection's own, of all rows."""
        found = self._known.get(selection)
        if found is None:
            tested = self._joined([((1 << b.rows) - 1) * (selection in b.passed_by_selection) for b in self.batches])
            passed = self._joined([batch.passed_by_selection.get(selection, 0) for batch in self.batches])
            found = self._known[selection] = (tested, passed)
        return SelectionRows(share, *found)

    def _joined(self, bits_by_batch: list[int]) -> int:
        joined = 0
        for age, bits in enumerate(bits_by_batch):
            joined |= (bits & _USED_BY_AGE[age]) << age * SAMPLED_ROWS_A_BATCH
        return joined

    def union_share(self, share_by_selection: Mapping[str, Estimate]) -> Estimate:
        """Of the rows that at least one selection wants; their own shares bound it, and are it where nothing overlaps.

        Selections that were never sampled together count as independent.
        """
        if not share_by_selection:
            return Estimate(0.0, Origin.GIVEN)
        singles = list(share_by_selection.values())
        union = UnionRows()
        for text, estimate in share_by_selection.items():
            union = union.plus(self.rows_of(text, estimate.value))
        if union.upper == union.largest:
            return max(singles, key=lambda estimate: estimate.value)
        if not union.single_rows or any(estimate.origin is Origin.ASSUMED for estimate in singles):
            return Estimate(union.share, Origin.ASSUMED)
        rows = union.tested.bit_count()
        # As if one more row had passed and one more had not: a small sample never claims to know for certain.
        sampled = ((union.passed & union.tested).bit_count() + 1) / (rows + 2)
        error = min(2 * math.sqrt((1 - sampled) / (sampled * rows)), (union.upper - union.largest) / union.share)
        return Estimate(union.share, Origin.ESTIMATED, error)


class UnionRows(NamedTuple):
    """The rows that at least one of some selections of a store wants, none to begin with.

    Planners ask for thousands of unions that differ by one selection: to add one costs as much for two as for hundreds.
    """

    parts: tuple[SelectionRows, ...] = ()
    largest: float = 0.0
    total: float = 0.0
    unwanted: float = 1.0
    """The share that none wants, as if they were independent."""
    tested: int = -1
    """Rows of the sample for which all were tested; every row, as long as there is no selection."""
    passed: int = 0
    single_rows: int = 0
    """Rows of the sample that each wants, added up."""

    def plus(self, part: SelectionRows) -> UnionRows:
        """With one more selection, which is not among them yet."""
        tested = self.tested & part.tested
        before = self.single_rows
        if tested != self.tested:
            before = sum((each.passed & tested).bit_count() for each in self.parts)
        return UnionRows(
            (*self.parts, part),
            max(self.largest, part.share),
            self.total + part.share,
            self.unwanted * (1.0 - part.share),
            tested,
            self.passed | part.passed,
            before + (part.passed & tested).bit_count(),
        )

    def share_with(self, part: SelectionRows) -> float:
        """`plus(part).share`, for the many that are tried and not kept."""
        tested, share = self.tested, part.share
        if tested & part.tested != tested:
            return self.plus(part).share
        total, largest = self.total + share, max(self.largest, share)
        single_rows = self.single_rows + (part.passed & tested).bit_count()
        if single_rows:
            value = total * ((self.passed | part.passed) & tested).bit_count() / single_rows
        else:
            value = 1.0 - self.unwanted * (1.0 - share)
        return max(min(value, total, 1.0), largest)

    @property
    def upper(self) -> float:
        return max(min(self.total, 1.0), self.largest)

    @property
    def share(self) -> float:
        if self.single_rows:
            value = self.total * (self.passed & self.tested).bit_count() / self.single_rows
        else:
            value = 1.0 - self.unwanted
        return max(min(value, self.upper), self.largest)


def _every(quarters: int) -> int:
    """Bits of the rows that are used of a batch: so many of every four."""
    return sum(1 << row for row in range(SAMPLED_ROWS_A_BATCH) if row % 4 < quarters)


_USED_BY_AGE = tuple(_every(SAMPLED_BATCHES - age) for age in range(SAMPLED_BATCHES))
