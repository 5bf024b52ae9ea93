from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.match.hash_keys import group_of_codes, spread_codes
from dovetail.kernels.match.summarize_codes import count_by_group, heavy_codes, smallest_codes, smallest_spread_codes

TOP = (1 << 64) - 1
CODES = st.lists(st.one_of(st.integers(0, TOP), st.integers(0, 5), st.integers(TOP - 5, TOP)), max_size=60).map(sorted)


@given(CODES, st.sampled_from([1, 2, 8, 128]))
def test_groups_are_counted_as_codes_are_placed(values: list[int], group_count: int) -> None:
    codes = np.array(values, np.uint64)
    expected = np.bincount(group_of_codes(codes, group_count), minlength=group_count)
    assert count_by_group(codes, group_count).tolist() == expected.tolist()


@given(CODES, st.integers(0, 70))
def test_the_smallest_codes_are_distinct_and_in_order(values: list[int], count: int) -> None:
    assert smallest_codes(np.array(values, np.uint64), count).tolist() == sorted(set(values))[:count]


@given(CODES, st.integers(1, 70))
def test_the_smallest_of_turned_codes_are_found_among_all(values: list[int], count: int) -> None:
    codes = np.array(values, np.uint64)
    assert smallest_spread_codes(codes, count).tolist() == sorted(set(spread_codes(codes).tolist()))[:count]


@pytest.mark.parametrize("min_share", [0.0001, 0.0025, 0.01])
@pytest.mark.parametrize("seed", range(8))
def test_every_heavy_code_is_found_and_counted(seed: int, min_share: float) -> None:
    chance = np.random.default_rng(seed)
    length = int(chance.integers(1024, 30_000))
    codes = np.sort(chance.zipf(1.0 + chance.random(), length).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    counts = Counter(codes.tolist())
    heavy = heavy_codes(codes, min_share)
    expected = {code: count for code, count in counts.items() if count >= min_share * length}
    assert dict(zip(heavy.codes.tolist(), heavy.counts.tolist(), strict=True)) == expected


@pytest.mark.parametrize("length", [0, 1, 399, 1023])
def test_few_rows_have_no_heavy_codes(length: int) -> None:
    assert len(heavy_codes(np.zeros(length, np.uint64)).codes) == 0
