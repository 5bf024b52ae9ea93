"""A random forest that predicts SharedWith where pairs of key groups are too many to be sampled well (S6).

As in SASPAR: the source use, its key group, the target use, its key group and the time say the share. The forest learns
from pairs that were measured. What it is worth is measured too: it learns from half of the sampled rows, without some
pairs, and both the forest and that half alone are held against the other half on the pairs that were held out.

Key groups are hashes. A forest knows that a share depends on its target's size, and which few key groups are special;
it knows nothing of which one of 128 others a key group goes with unless it was told. So it wins where nothing is to be
shared, by saying so with less noise than a thin sample, and hardly ever where keys go together.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.stats.key_group_sample import NO_GROUP, Cells, Groups, KeyGroupSample

MAX_PAIRS = 4_000_000
"""With more, even predicting all of them takes too long."""
LEAST_SAMPLED = 500
"""With fewer rows, there is nothing to learn from that the sample does not say itself."""
TRAINED_PAIRS = 10_000
HELD_OUT_PAIRS = 4_000
TREES = 30
MAX_CELLS = 20_000
NOT_INSTALLED = (
    "pairs of key groups are sampled only, for scikit-learn is not installed (pip install 'dovetail[forest]')"
)

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Trial:
    """Root mean squares of what was said of held-out pairs minus what the other half of the sample says.

    That half has an error of its own, which both have to bear.
    """

    pairs: int
    forest_error: float
    sample_error: float

    @property
    def is_better(self) -> bool:
        return self.forest_error < self.sample_error

    def __str__(self) -> str:
        verdict = "so it is used" if self.is_better else "so it is not used"
        return (
            f"on held-out pairs of {self.pairs:,} a forest errs by {self.forest_error:.3g} and the sample by "
            f"{self.sample_error:.3g}, {verdict}"
        )


@dataclass(frozen=True, eq=False)
class Prediction:
    """`shares` by source use, target use, source group and target group; `rows` a batch by use and group."""

    uses: tuple[str, ...]
    trial: Trial
    shares: F64
    rows: F64

    def cells(self) -> Cells:
        """The strongest overlaps as cells of two uses each, and what is left of every key group alone.

        A row of n uses is in n - 1 pairs with each of them, so a pair has that part of it.
        """
        count, group_count = self.rows.shape
        columns, rows = [], []
        left = self.rows.copy()
        for source in range(count):
            for target in range(source + 1, count):
                expected = self.shares[source, target] * self.rows[source][:, None] / (count - 1)
                by_chance = np.outer(self.rows[source], self.rows[target]) / max(self.rows[target].sum(), 1.0)
                expected[expected * (count - 1) < 2 * by_chance] = 0.0
                expected *= _at_most(self.rows[source] / (count - 1), expected.sum(axis=1))[:, None]
                expected *= _at_most(self.rows[target] / (count - 1), expected.sum(axis=0))
                kept = np.argsort(expected, axis=None)[::-1][: MAX_CELLS * 2 // (count * (count - 1))]
                kept = kept[expected.ravel()[kept] > 0]
                groups = np.full((count, len(kept)), NO_GROUP, np.int16)
                groups[source], groups[target] = kept // group_count, kept % group_count
                columns.append(groups)
                rows.append(expected.ravel()[kept])
                np.subtract.at(left[source], groups[source], rows[-1])
                np.subtract.at(left[target], groups[target], rows[-1])
        for use in range(count):
            alone = np.flatnonzero(left[use] > 0)
            groups = np.full((count, len(alone)), NO_GROUP, np.int16)
            groups[use] = alone
            columns.append(groups)
            rows.append(left[use, alone])
        return Cells(self.uses, np.concatenate(columns, axis=1), np.concatenate(rows), 0.0)


def has_too_many_pairs(sample: KeyGroupSample, uses: tuple[str, ...], group_count: int) -> bool:
    """Whether the sample has less than a row for each pair of key groups of two uses."""
    cells = sample.cells(uses) if len(uses) > 1 else None
    return cells is not None and _pair_count(uses, group_count) > cells.sampled


def predict_overlap(sample: KeyGroupSample, uses: tuple[str, ...], group_count: int) -> Prediction | str:
    """What a forest says of all pairs and how well, or in words why there is none."""
    cells = sample.cells(uses)
    if cells is None or cells.sampled < LEAST_SAMPLED:
        return "too few rows were sampled to predict from"
    if importlib.util.find_spec("sklearn") is None:
        return NOT_INSTALLED
    if _pair_count(uses, group_count) > MAX_PAIRS:
        return f"pairs of key groups are sampled only: {_pair_count(uses, group_count):,} are too many to predict"
    one, other = (_measured(half, uses, group_count) for half in sample.halves())
    if one is None or other is None:
        raise ValueError(f"half of a sample of {cells.sampled:.0f} rows has none")
    chance = np.random.default_rng(0)
    pairs = _pairs(one.is_known & other.is_known)
    if len(pairs) < 10:
        return "too few pairs of key groups were sampled to predict from"
    pairs = chance.permutation(pairs)
    held_out, learnt = np.split(pairs, [min(HELD_OUT_PAIRS, len(pairs) // 5)])
    predicted = _Forest(one, learnt, chance).predict(held_out)
    truth = other.shares[tuple(held_out.T)]
    trial = Trial(len(pairs), _rms(predicted - truth), _rms(one.shares[tuple(held_out.T)] - truth))
    whole = _measured(sample, uses, group_count)
    if whole is None or not trial.is_better:
        return str(trial)
    shares = np.zeros_like(whole.shares)
    pairs = _pairs(whole.is_known)
    shares[tuple(pairs.T)] = _Forest(whole, chance.permutation(pairs), chance).predict(pairs)
    return Prediction(uses, trial, shares, whole.rows)


@dataclass(frozen=True, eq=False)
class _Measured:
    """Shares by source use, target use, source group, target group; the same of single batches, the newest first."""

    shares: F64
    rows: F64
    shares_by_age: tuple[F64, ...]

    @property
    def is_known(self) -> npt.NDArray[np.bool_]:
        """By source use and group."""
        return self.rows > 0


def _measured(sample: KeyGroupSample, uses: tuple[str, ...], group_count: int) -> _Measured | None:
    weighted = sample.weighted_rows(uses)
    if weighted is None:
        return None
    rows = np.stack([_count(groups, group_count, weighted.weights) for groups in weighted.groups])
    by_age = []
    for seen in sample.batches:
        groups = seen.of_uses(uses)
        if groups is not None:
            by_age.append(_shares(groups, np.ones(groups.shape[1]), group_count))
    return _Measured(_shares(weighted.groups, weighted.weights, group_count), rows, tuple(by_age))


def _shares(groups: Groups, weights: F64, group_count: int) -> F64:
    count = len(groups)
    shares = np.zeros((count, count, group_count, group_count))
    for source in range(count):
        rows = _count(groups[source], group_count, weights)
        for target in range(count):
            if target != source:
                both = (groups[source] != NO_GROUP) & (groups[target] != NO_GROUP)
                pair = groups[source, both].astype(np.int64) * group_count + groups[target, both]
                found = np.bincount(pair, weights[both], group_count**2).reshape(group_count, group_count)
                shares[source, target] = found / np.maximum(rows, 1e-12)[:, None]
    return shares


def _count(groups: Groups, group_count: int, weights: F64) -> F64:
    is_placed = groups != NO_GROUP
    return np.bincount(groups[is_placed], weights[is_placed], group_count).astype(np.float64)


def _pair_count(uses: tuple[str, ...], group_count: int) -> int:
    return len(uses) * (len(uses) - 1) * group_count**2


def _pairs(is_known: npt.NDArray[np.bool_]) -> I64:
    """(source use, target use, source group, target group) of every pair whose source group has rows."""
    count, group_count = is_known.shape
    is_pair = np.broadcast_to(is_known[:, None, :, None], (count, count, group_count, group_count)).copy()
    is_pair[np.arange(count), np.arange(count)] = False
    return np.argwhere(is_pair)


class _Forest:
    """Learnt from some of `pairs`: as many that were met as were not, each counting for all that it stands for."""

    def __init__(self, measured: _Measured, pairs: I64, chance: np.random.Generator) -> None:
        from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415 - an optional extra, and slow to load

        is_met = measured.shares[tuple(pairs.T)] > 0
        chosen, weights = [], []
        for part in (pairs[is_met], pairs[~is_met]):
            taken = part[: TRAINED_PAIRS // 2]
            chosen.append(taken)
            weights.append(np.full(len(taken), len(part) / max(len(taken), 1)))
        learnt = np.concatenate(chosen)
        ages = chance.integers(0, len(measured.shares_by_age), len(learnt))
        shares = np.empty(len(learnt))
        for age, of_batch in enumerate(measured.shares_by_age):
            shares[ages == age] = of_batch[tuple(learnt[ages == age].T)]
        self._forest = RandomForestRegressor(TREES, min_samples_leaf=32, random_state=0)
        self._forest.fit(np.column_stack([learnt, -ages]), shares, np.concatenate(weights))

    def predict(self, pairs: I64) -> F64:
        """As of the newest batch."""
        found: F64 = self._forest.predict(np.column_stack([pairs, np.zeros(len(pairs), np.int64)]))
        return found


def _at_most(rows: F64, expected: F64) -> F64:
    """By what to multiply, so that nothing has more rows than there are."""
    return np.minimum(1.0, rows / np.maximum(expected, 1e-12))


def _rms(errors: F64) -> float:
    return float(np.sqrt(np.mean(errors**2)))
