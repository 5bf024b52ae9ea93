"""Key groups of sampled rows: cells and SharedWith against the rows they were drawn from."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.stats.key_group_sample import (
    NO_GROUP,
    SAMPLED_BATCHES,
    WEIGHT_BY_AGE,
    KeyGroupSample,
    KeyGroupsSeen,
)
from dovetail.stats.observed import FORGET_AFTER_BATCHES, BatchSeen, ObservedStats
from dovetail.stats.shared_with import NOTHING_KNOWN, Overlap, SharedWith


def seen(
    batch: int, rows: list[tuple[int, ...]], *, uses: tuple[str, ...] = ("x", "y"), came: int = 0
) -> KeyGroupsSeen:
    return KeyGroupsSeen(batch, came or len(rows), uses, np.array(rows, np.int16).T)


def sample(*batches: KeyGroupsSeen) -> KeyGroupSample:
    """The oldest first."""
    found = KeyGroupSample()
    for batch in batches:
        found = found.folded(batch)
    return found


def test_the_papers_example() -> None:
    """Figure 2: of the 6 rows of Q1 in G1, 3 are in G1 of Q2 and 3 in G8."""
    shared_with = SharedWith(sample(seen(0, [(1, 1)] * 3 + [(1, 8)] * 3 + [(2, 8)])))
    assert shared_with("x", 1, "y") == Overlap({1: 0.5, 8: 0.5}, 6.0)
    assert shared_with("y", 8, "x").share_by_group == pytest.approx({1: 0.75, 2: 0.25})
    assert shared_with("x", 5, "y") is NOTHING_KNOWN
    assert shared_with("x", 1, "z") is NOTHING_KNOWN


def test_rows_that_a_use_does_not_place_are_no_ones_share() -> None:
    shared_with = SharedWith(sample(seen(0, [(3, 1), (3, 1), (3, NO_GROUP), (7, 1), (NO_GROUP, NO_GROUP)])))
    assert shared_with("x", 3, "y").share_by_group == pytest.approx({1: 2 / 3})
    assert shared_with("y", 1, "x").share_by_group == pytest.approx({3: 2 / 3, 7: 1 / 3})


def test_the_error_covers_the_truth_and_shrinks_with_rows() -> None:
    chance = np.random.default_rng(1)
    errors = []
    for count in (50, 5000):
        missed = 0
        for _ in range(200):
            groups = np.stack([np.zeros(count), chance.random(count) < 0.3]).astype(np.int16)
            overlap = SharedWith(sample(KeyGroupsSeen(0, count, ("x", "y"), groups)))("x", 0, "y")
            missed += abs(overlap.share(1) - 0.3) > overlap.error(1)
        assert missed < 20
        errors.append(overlap.error(1))
    assert errors[1] < errors[0] / 5


@given(st.lists(st.lists(st.tuples(*[st.integers(-1, 3)] * 3), min_size=1, max_size=12), min_size=1, max_size=10))
def test_cells_are_the_rows_of_a_batch(batches: list[list[tuple[int, ...]]]) -> None:
    uses = ("x", "y", "z")
    found = sample(*(seen(batch, rows, uses=uses, came=10 * len(rows)) for batch, rows in enumerate(batches)))
    cells = found.cells(("x", "z"))
    assert cells is not None
    expected: Counter[tuple[int, int]] = Counter()
    newest_first = list(reversed(batches))[:SAMPLED_BATCHES]
    total = sum(WEIGHT_BY_AGE**age for age in range(len(newest_first)))
    for age, rows in enumerate(newest_first):
        for x, _, z in rows:
            if (x, z) != (NO_GROUP, NO_GROUP):
                expected[x, z] += 10 * WEIGHT_BY_AGE**age / total  # type: ignore[assignment]
    actual = dict(zip(map(tuple, cells.groups.T.tolist()), cells.rows.tolist(), strict=True))
    assert actual == pytest.approx(dict(expected))
    assert list(actual) == sorted(actual)


def test_batches_without_a_use_say_nothing_of_it() -> None:
    found = sample(seen(0, [(1, 2)]), seen(1, [(5,)], uses=("x",)))
    cells = found.cells(("x", "y"))
    assert cells is not None
    assert cells.groups.T.tolist() == [[1, 2]]
    assert found.of_batch(1).cells(("x", "y")) is None
    assert found.cells(("z",)) is None
    assert found.cells(()) is None


def test_halves_are_all_rows() -> None:
    rows = [(group, group) for group in range(9)]
    one, other = sample(seen(0, rows, came=90)).halves()
    groups = [half.batches[0].groups[0].tolist() for half in (one, other)]
    assert groups == [[0, 2, 4, 6, 8], [1, 3, 5, 7]]


def test_a_sample_is_forgotten_with_its_store() -> None:
    stats = ObservedStats().folded(BatchSeen(0, key_groups={"a": seen(0, [(1, 2)])}))
    assert stats.key_groups["a"].batches[0].batch == 0
    assert "a" in stats.folded(BatchSeen(FORGET_AFTER_BATCHES - 1)).key_groups
    assert "a" not in stats.folded(BatchSeen(FORGET_AFTER_BATCHES)).key_groups


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="2 uses need as many lines"):
        KeyGroupsSeen(0, 3, ("x", "y"), np.zeros((1, 3), np.int16))
    with pytest.raises(ValueError, match="of 2 rows 3 cannot be sampled"):
        KeyGroupsSeen(0, 2, ("x",), np.zeros((1, 3), np.int16))
    with pytest.raises(ValueError, match="at most 8 batches"):
        KeyGroupSample((seen(0, [(1, 1)]),) * 9)
    with pytest.raises(ValueError, match="more than 1"):
        Overlap({1: 0.7, 2: 0.7}, 3)
