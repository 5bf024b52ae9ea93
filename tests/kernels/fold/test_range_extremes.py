"""The smallest of a run, wherever in its blocks it lies."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.kernels.fold.fold_runs import Runs
from dovetail.kernels.fold.range_extremes import extremes_of_runs, find_extremes

LENGTHS = (1, 15, 16, 17, 255, 256, 257, 300)


@pytest.mark.parametrize("length", LENGTHS)
def test_the_smallest_of_a_run_is_found_at_every_place(length: int) -> None:
    for place in range(length):
        keys = np.full(length, 7, np.int64)
        keys[place] = 3
        runs = Runs(np.array([0, 0, place]), np.array([length, place, length]))
        found = extremes_of_runs(find_extremes(keys), runs).tolist()
        assert found[0] == found[2] == place
        assert found[1] == -1 if place == 0 else 0 <= found[1] < place


def test_runs_of_random_keys_have_the_smallest_that_a_loop_finds() -> None:
    random_numbers = np.random.default_rng(1)
    keys = random_numbers.integers(0, 1000, 700)
    ends = random_numbers.integers(0, 701, (500, 2))
    begins, ends = ends.min(axis=1), ends.max(axis=1)
    found = extremes_of_runs(find_extremes(keys), Runs(begins, ends)).tolist()
    for begin, end, position in zip(begins.tolist(), ends.tolist(), found, strict=True):
        assert position == -1 if begin == end else keys[position] == keys[begin:end].min()
