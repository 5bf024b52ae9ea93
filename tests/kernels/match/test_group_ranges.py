"""Ranges that lie apart are searched apart; those that are much the same together."""

from __future__ import annotations

import numpy as np

from dovetail.kernels.match.group_ranges import MOST_GROUPS, Runs, group_ranges
from dovetail.kernels.match.order_values import RowRanges

ROWS, ENTRIES = 500, 10_000
RANDOM = np.random.default_rng(7)
ORDERS = np.sort(RANDOM.integers(0, 100_000, ENTRIES))


def keyless() -> Runs:
    return Runs.sampled(np.zeros(ROWS, np.uint64), np.zeros(ENTRIES, np.uint64), ORDERS, has_keys=False)


def around(middles: np.ndarray, apart: int) -> RowRanges:
    return RowRanges(middles - apart, middles + apart)


def test_bands_around_other_columns_are_searched_apart() -> None:
    bands = [around(RANDOM.integers(0, 100_000, ROWS), 10) for _ in range(5)]
    assert group_ranges(bands, keyless()) == [(0,), (1,), (2,), (3,), (4,)]


def test_bands_around_the_same_column_are_searched_together() -> None:
    middles = RANDOM.integers(0, 100_000, ROWS)
    bands = [around(middles, 1000 + constant) for constant in range(0, 50, 10)]
    assert group_ranges(bands, keyless()) == [(0, 1, 2, 3, 4)]


def test_both_at_once() -> None:
    one, other = RANDOM.integers(0, 100_000, ROWS), RANDOM.integers(0, 100_000, ROWS)
    bands = [around(one, 500), around(other, 500), around(one, 510), around(other, 490)]
    assert group_ranges(bands, keyless()) == [(0, 2), (1, 3)]


def test_short_runs_of_a_key_are_walked_as_a_whole() -> None:
    codes = np.sort(RANDOM.integers(0, 5000, ENTRIES)).astype(np.uint64)
    probing = np.sort(RANDOM.integers(0, 5000, ROWS)).astype(np.uint64)
    runs = Runs.sampled(probing, codes, RANDOM.integers(0, 100_000, ENTRIES), has_keys=True)
    bands = [around(RANDOM.integers(0, 100_000, ROWS), 10) for _ in range(3)]
    assert group_ranges(bands, runs) == [(0, 1, 2)]


def test_a_range_in_which_nothing_lies_joins_any_group_and_widens_none() -> None:
    middles = RANDOM.integers(0, 100_000, ROWS)
    nowhere = RowRanges(np.full(ROWS, 5), np.full(ROWS, 4))
    assert group_ranges([nowhere, around(middles, 10), nowhere], keyless()) == [(0, 1, 2)]


def test_there_are_no_more_groups_than_searches_pay_for() -> None:
    bands = [around(RANDOM.integers(0, 100_000, ROWS), 10) for _ in range(MOST_GROUPS + 4)]
    groups = group_ranges(bands, keyless())
    assert len(groups) == MOST_GROUPS
    assert sorted(place for group in groups for place in group) == list(range(len(bands)))


def test_nobody_probes() -> None:
    runs = Runs.sampled(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64), has_keys=False)
    none = np.zeros(0, np.int64)
    assert group_ranges([RowRanges(none, none)], runs) == [(0,)]
