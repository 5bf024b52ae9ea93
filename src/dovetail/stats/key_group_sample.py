"""Into which key groups the rows of a store fall, for all its uses at once: the sample behind SharedWith (S3).

    a row   placed by [user]   placed by [pack]      cells: (3, 1) twice, (3, -) once, (7, 1) once
    r1             3                  1
    r2             3                  1              of the rows that [user] has in group 3 two thirds are in group 1
    r3             3                  -              of [pack]; the others have no pack
    r4             7                  1

One vector of key groups a row tells of every pair of uses, and of how many places a row goes to under any placement:
nobody has to count pairs of key groups, of which there are uses^2 * groups^2.

Each batch brings some rows. They are kept for a few batches, and older ones weigh less. Nothing of this survives a
restart: the first batch after it brings a sample again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

NO_GROUP = -1
"""The use does not place the row: its key is NULL, or fails on it."""

SAMPLED_ROWS_A_BATCH = 1024
SAMPLED_BATCHES = 8
WEIGHT_BY_AGE = 0.7
"""What a batch weighs over the one after it: three batches after a change two thirds of what is known is new."""

Groups = npt.NDArray[np.int16]
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KeyGroupsSeen:
    """Some of the `rows` that a batch stored: `groups` is by use and row."""

    batch: int
    rows: int
    uses: tuple[str, ...]
    groups: Groups

    def __post_init__(self) -> None:
        if self.groups.ndim != 2 or len(self.groups) != len(self.uses):
            raise ValueError(f"{len(self.uses)} uses need as many lines of key groups, not {self.groups.shape}")
        if not 0 < self.groups.shape[1] <= self.rows:
            raise ValueError(f"of {self.rows} rows {self.groups.shape[1]} cannot be sampled")

    def of_uses(self, uses: Sequence[str]) -> Groups | None:
        """None if one of them was not there yet, or no longer."""
        if not set(uses) <= set(self.uses):
            return None
        return self.groups[[self.uses.index(use) for use in uses]]


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Sampled rows: `groups` is by use and row, `weights` how many rows of a batch each stands for."""

    groups: Groups
    weights: F64

    def sampled_of(self, chosen: npt.NDArray[np.bool_]) -> float:
        """How many rows of equal weight say as much as the chosen ones (Kish)."""
        weights = self.weights[chosen]
        squares = float(weights @ weights)
        return float(weights.sum()) ** 2 / squares if squares else 0.0


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows that all uses place alike are one cell: `groups` is by use and cell, `rows` how many a batch brings.

    `sampled` is how many rows of equal weight would say as much; `unplaced` are rows a batch that no use places.
    """

    uses: tuple[str, ...]
    groups: Groups
    rows: F64
    sampled: float
    unplaced: float = 0.0

    def times(self, factor: float) -> Cells:
        """As if every row were so many."""
        return replace(self, rows=self.rows * factor, unplaced=self.unplaced * factor)


@dataclass(frozen=True)
class KeyGroupSample:
    """One store's rows; `batches` has the newest first."""

    batches: tuple[KeyGroupsSeen, ...] = ()

    def __post_init__(self) -> None:
        if len(self.batches) > SAMPLED_BATCHES:
            raise ValueError(f"a sample is of at most {SAMPLED_BATCHES} batches, not {len(self.batches)}")

    def folded(self, newest: KeyGroupsSeen) -> KeyGroupSample:
        return KeyGroupSample((newest, *self.batches)[:SAMPLED_BATCHES])

    def of_batch(self, batch: int) -> KeyGroupSample:
        """The rows of one batch alone: what nothing was decided by yet, if it is the newest."""
        return KeyGroupSample(tuple(seen for seen in self.batches if seen.batch == batch))

    def halves(self) -> tuple[KeyGroupSample, KeyGroupSample]:
        """Every other row, and the others: what one half says can be held against the other."""
        parts = [
            KeyGroupSample(
                tuple(
                    KeyGroupsSeen(seen.batch, seen.rows, seen.uses, seen.groups[:, half::2])
                    for seen in self.batches
                    if seen.groups.shape[1] > 1
                )
            )
            for half in (0, 1)
        ]
        return parts[0], parts[1]

    def weighted_rows(self, uses: Sequence[str]) -> WeightedRows | None:
        """Of the batches that know all these uses; None if there is none."""
        known = [(age, seen, seen.of_uses(uses)) for age, seen in enumerate(self.batches)]
        found = [(WEIGHT_BY_AGE**age, seen, groups) for age, seen, groups in known if groups is not None]
        if not found or not uses:
            return None
        total = sum(weight for weight, _, _ in found)
        weights = [
            np.full(groups.shape[1], weight / total * seen.rows / groups.shape[1]) for weight, seen, groups in found
        ]
        return WeightedRows(np.concatenate([groups for _, _, groups in found], axis=1), np.concatenate(weights))

    def cells(self, uses: Sequence[str]) -> Cells | None:
        """The same, equal rows together; rows that no use places are left out."""
        weighted = self.weighted_rows(uses)
        if weighted is None:
            return None
        is_placed = (weighted.groups != NO_GROUP).any(axis=0)
        distinct, cell_of_row = _distinct_columns(weighted.groups[:, is_placed])
        rows: F64 = np.bincount(cell_of_row, weighted.weights[is_placed], distinct.shape[1]).astype(np.float64)
        unplaced = float(weighted.weights[~is_placed].sum())
        return Cells(tuple(uses), distinct, rows, weighted.sampled_of(is_placed), unplaced)


def _distinct_columns(vectors: Groups) -> tuple[Groups, npt.NDArray[np.int64]]:
    """The different columns in ascending order, and which of them each column is."""
    if vectors.shape[1] == 0:
        return vectors, np.zeros(0, np.int64)
    words = _words(vectors)
    order = np.lexsort(words[::-1]) if len(words) > 1 else np.argsort(words[0])
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (words[:, order[1:]] != words[:, order[:-1]]).any(axis=0)
    cell_of_row = np.empty(len(order), np.int64)
    cell_of_row[order] = np.cumsum(is_new) - 1
    return vectors[:, order[is_new]], cell_of_row


def _words(vectors: Groups) -> npt.NDArray[np.int64]:
    """The same columns in as few integers each as they fit in, and in the same order: sorting them is faster."""
    bits = (int(vectors.max()) + 1).bit_length()
    shifted = vectors.astype(np.int64) - NO_GROUP
    width = 62 // max(bits, 1)
    words = np.zeros((-(-len(vectors) // width), vectors.shape[1]), np.int64)
    for place, groups in enumerate(shifted):
        words[place // width] = (words[place // width] << bits) | groups
    return words
