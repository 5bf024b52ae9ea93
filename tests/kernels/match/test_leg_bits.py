from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.match.leg_bits import bits_of_rows, no_bits, rows_of_legs
from dovetail.kernels.match.special_values import ALL_PASS, NONE_PASS

LEG_COUNTS = st.sampled_from([1, 2, 7, 63, 64, 65, 130])
ROWS = 5
WORDS = 2


@given(LEG_COUNTS, st.integers(0, 1 << 30))
def test_rows_have_the_bits_of_the_selections_they_pass(leg_count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    words = generator.integers(0, 1 << 64, (WORDS, ROWS), np.uint64)
    places = generator.integers(NONE_PASS, 64 * WORDS, leg_count).tolist()
    bits = bits_of_rows(places, lambda word: words[word], ROWS)
    for leg, place in enumerate(places):
        for row in range(ROWS):
            passes = place == ALL_PASS or (place >= 0 and int(words[place // 64, row]) >> (place % 64) & 1 == 1)
            assert bool(int(bits[leg // 64, row]) >> (leg % 64) & 1) == passes


@pytest.mark.parametrize(("place", "expected"), [(ALL_PASS, (1 << 64) - 1), (NONE_PASS, 0)])
def test_64_legs_that_all_or_none_pass_read_no_words(place: int, expected: int) -> None:
    assert bits_of_rows([place] * 64, lambda _: np.zeros(0, np.uint64), 2).tolist() == [[expected] * 2]


@given(LEG_COUNTS, st.integers(0, 1 << 30), st.integers(0, 20))
def test_every_leg_gets_its_rows_in_order(leg_count: int, seed: int, row_count: int) -> None:
    chosen = np.random.default_rng(seed).random((leg_count, row_count)) < 0.3
    bits = no_bits(leg_count, row_count)
    for leg in range(leg_count):
        bits[leg // 64, chosen[leg]] |= np.uint64(1 << (leg % 64))
    assert [rows.tolist() for rows in rows_of_legs(bits, leg_count)] == [
        np.flatnonzero(of_leg).tolist() for of_leg in chosen
    ]
