"""The forest is used only where it errs less than the sample, and what it says becomes cells without losing rows."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np
import pytest

from dovetail.stats.key_group_sample import NO_GROUP, Groups, KeyGroupSample, KeyGroupsSeen
from dovetail.stats.predict_overlap import NOT_INSTALLED, Prediction, has_too_many_pairs, predict_overlap

GROUPS = 32
USES = ("x", "y", "z")
CHANCE = np.random.default_rng(5)
PARTNER = CHANCE.permutation(GROUPS)


def independent(rows: int) -> Groups:
    return CHANCE.integers(0, GROUPS, (3, rows)).astype(np.int16)


def together(rows: int) -> Groups:
    x = CHANCE.integers(0, GROUPS, rows)
    return np.stack([x, PARTNER[x], np.where(x % 5, x, NO_GROUP)]).astype(np.int16)


def sample_of(make: Callable[[int], Groups], rows: int = 200) -> KeyGroupSample:
    sample = KeyGroupSample()
    for batch in range(4):
        sample = sample.folded(KeyGroupsSeen(batch, 10 * rows, USES, make(rows)))
    return sample


def test_it_tells_that_independent_keys_share_nothing() -> None:
    sample = sample_of(independent)
    assert has_too_many_pairs(sample, USES, GROUPS)
    found = predict_overlap(sample, USES, GROUPS)
    assert isinstance(found, Prediction)
    assert found.trial.forest_error < found.trial.sample_error
    # The truth is 1/32 everywhere; of a source group some twenty rows were sampled.
    assert np.abs(found.shares[0, 1] - 1 / GROUPS).max() < 0.1
    assert "so it is used" in str(found.trial)


def test_it_is_left_out_where_keys_go_together() -> None:
    found = predict_overlap(sample_of(together), USES, GROUPS)
    assert isinstance(found, str)
    assert "so it is not used" in found


def test_its_cells_hold_all_rows_of_every_use() -> None:
    found = predict_overlap(sample_of(independent), USES, GROUPS)
    assert isinstance(found, Prediction)
    cells = found.cells()
    for place in range(len(USES)):
        is_placed = cells.groups[place] != NO_GROUP
        by_group = np.bincount(cells.groups[place, is_placed], cells.rows[is_placed], GROUPS)
        assert by_group.sum() == pytest.approx(2000)
    assert (cells.rows > 0).all()


def test_enough_rows_need_no_prediction() -> None:
    assert not has_too_many_pairs(sample_of(lambda rows: independent(rows) % 2, 400), USES, 2)
    assert not has_too_many_pairs(sample_of(independent), ("x",), GROUPS)
    assert not has_too_many_pairs(KeyGroupSample(), USES, GROUPS)


def test_without_scikit_learn_the_sample_is_all_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert predict_overlap(sample_of(independent), USES, GROUPS) == NOT_INSTALLED
    assert "dovetail[forest]" in NOT_INSTALLED


def test_too_little_to_learn_from_is_said_in_words() -> None:
    one_row = KeyGroupSample((KeyGroupsSeen(0, 1, USES, np.zeros((3, 1), np.int16)),))
    assert "too few rows" in str(predict_overlap(one_row, USES, GROUPS))
    assert "too many to predict" in str(predict_overlap(sample_of(independent), USES, 1 << 12))
