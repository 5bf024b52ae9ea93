from __future__ import annotations

import numpy as np
import pytest

from dovetail.kernels.select.select_rows import (
    Mask,
    SelectionWords,
    add_mask,
    any_of,
    no_selections,
    spread_rows,
    unpack_sample,
)


def masks_of(count: int, length: int) -> list[Mask]:
    generator = np.random.default_rng(count)
    return [generator.random(length) < 0.4 for _ in range(count)]


def words_of(masks: list[Mask], length: int, failed: frozenset[int] = frozenset()) -> SelectionWords:
    words = no_selections(len(masks), length)
    for place, mask in enumerate(masks):
        add_mask(words, place, mask)
    return SelectionWords(words, len(masks), length, failed)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 130])
def test_mask_i_is_bit_i_mod_64_of_word_i_div_64(count: int) -> None:
    masks = masks_of(count, 9)
    found = words_of(masks, 9)
    words = found.words
    assert len(words) == -(-count // 64)
    assert all(word.dtype == np.uint64 for word in words)
    for place, mask in enumerate(masks):
        bits = [int(word) >> (place % 64) & 1 for word in words[place // 64]]
        assert bits == mask.astype(int).tolist()
        assert found.mask(place).tolist() == mask.tolist()
    assert found.any().tolist() == any_of(masks, 9).tolist()


def test_bits_that_no_mask_fills_are_zero() -> None:
    (word,) = words_of([np.ones(3, np.bool_)] * 3, 3).words
    assert word.tolist() == [0b111] * 3


def test_rows_are_taken_by_mask_and_by_position() -> None:
    masks = masks_of(70, 20)
    wanted = masks_of(1, 20)[0]
    for rows in (wanted, np.flatnonzero(wanted)[::-1]):
        taken = words_of(masks, 20, frozenset({3})).take(rows)
        assert (taken.length, taken.count, taken.failed) == (int(wanted.sum()), 70, {3})
        assert all(taken.mask(place).tolist() == mask[rows].tolist() for place, mask in enumerate(masks))


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


@pytest.mark.parametrize(("length", "count"), [(0, 4), (3, 4), (4, 4), (5, 4), (1000, 256), (7, 0)])
def test_a_row_is_drawn_from_each_stretch(length: int, count: int) -> None:
    rows = spread_rows(length, count)
    assert len(rows) == min(length, count)
    for place, row in enumerate(rows.tolist()):
        stretch = max(length / count, 1.0)
        assert int(place * stretch) <= row < (place + 1) * stretch


@pytest.mark.parametrize("period", [2, 3, 4, 8, 10, 256])
def test_rows_that_come_in_turns_are_drawn_evenly(period: int) -> None:
    """At a fixed distance of 4 or so, every row drawn would be of the same kind."""
    rows = spread_rows(1024 * 8, 256)
    share = float(np.mean(rows % period < period / 2))
    assert share == pytest.approx(-(-period // 2) / period, abs=0.07)


@pytest.mark.parametrize("count", [1, 8, 9, 70])
@pytest.mark.parametrize("length", [1, 7, 8, 9, 300])
def test_a_sample_unpacks_to_what_was_packed(count: int, length: int) -> None:
    masks = masks_of(count, length)
    rows = spread_rows(length, 20)
    unpacked = unpack_sample(words_of(masks, length).sample(rows), len(rows))
    assert unpacked.tolist() == [mask[rows].tolist() for mask in masks]


def test_a_sample_leaves_out_what_failed() -> None:
    masks = masks_of(5, 30)
    rows = spread_rows(30, 20)
    unpacked = unpack_sample(words_of(masks, 30, frozenset({1, 4})).sample(rows), len(rows))
    assert unpacked.tolist() == [masks[place][rows].tolist() for place in (0, 2, 3)]
    assert words_of([], 30).sample(rows) == b""
