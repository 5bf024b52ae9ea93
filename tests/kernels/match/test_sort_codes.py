from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.match.sort_codes import sort_codes

U64_MAX = (1 << 64) - 1


@given(st.lists(st.one_of(st.integers(0, U64_MAX), st.integers(0, 9), st.integers(U64_MAX - 9, U64_MAX))))
def test_codes_come_out_as_a_stable_sort_gives_them(values: list[int]) -> None:
    codes = np.array(values, np.uint64)
    ordered, order = sort_codes(codes)
    expected = np.argsort(codes, kind="stable")
    assert order.tolist() == expected.tolist()
    assert ordered.tolist() == codes[expected].tolist()


@pytest.mark.parametrize("low_bits", [3, 12, 40])
def test_codes_that_differ_only_where_the_position_lies_are_mended(low_bits: int) -> None:
    chance = np.random.default_rng(low_bits)
    codes = (np.uint64(7 << 50)) + chance.integers(0, 1 << low_bits, 5000, np.uint64)
    ordered, order = sort_codes(codes)
    assert ordered.tolist() == sorted(codes.tolist())
    assert codes[order].tolist() == ordered.tolist()
