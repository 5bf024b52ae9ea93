from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.word_bits import WORD_BITS, bit_at, has_bit, word_count


@given(st.lists(st.sets(st.integers(0, 199)), max_size=9), st.integers(0, 199))
def test_a_bit_is_where_it_was_put(places_by_row: list[set[int]], asked: int) -> None:
    words = np.zeros((word_count(200), len(places_by_row)), np.uint64)
    for row, places in enumerate(places_by_row):
        for place in places:
            words[place // WORD_BITS, row] |= bit_at(place)
    assert has_bit(words[asked // WORD_BITS], asked).tolist() == [asked in places for places in places_by_row]


def test_every_place_of_a_word_has_a_bit_of_its_own() -> None:
    assert [int(bit_at(place)) for place in (0, 1, 62, 63, 64)] == [1, 2, 1 << 62, 1 << 63, 1]
