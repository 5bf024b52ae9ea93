from __future__ import annotations

import numpy as np
import pytest

from dovetail.kernels.select_rows import Mask, any_of, pack_masks


def masks_of(count: int, length: int) -> list[Mask]:
    generator = np.random.default_rng(count)
    return [generator.random(length) < 0.4 for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 130])
def test_mask_i_is_bit_i_mod_64_of_word_i_div_64(count: int) -> None:
    masks = masks_of(count, 9)
    words = pack_masks(masks, 9)
    assert len(words) == -(-count // 64)
    assert all(word.dtype == np.uint64 for word in words)
    for place, mask in enumerate(masks):
        bits = [int(word) >> (place % 64) & 1 for word in words[place // 64]]
        assert bits == mask.astype(int).tolist()


def test_bits_that_no_mask_fills_are_zero() -> None:
    (word,) = pack_masks([np.ones(3, np.bool_)] * 3, 3)
    assert word.tolist() == [0b111] * 3


def test_any_of_wants_rows_that_some_mask_wants() -> None:
    masks = masks_of(3, 50)
    wanted = any_of(masks, 50)
    assert wanted.tolist() == [any(mask[row] for mask in masks) for row in range(50)]
    assert 0 < wanted.sum() < 50


def test_any_of_nothing_wants_no_row_and_changes_no_mask() -> None:
    assert any_of([], 4).tolist() == [False] * 4
    first = np.zeros(2, np.bool_)
    any_of([first, np.ones(2, np.bool_)], 2)
    assert not first.any()
