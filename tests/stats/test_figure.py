from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.stats.estimate import Estimate, Origin, product
from dovetail.stats.figure import Figure, Kind, Tally

COUNTS = st.integers(0, 10**6)


def test_a_figure_reads_as_a_sentence() -> None:
    assert str(Figure(Kind.SELECTION, ("views", "gt(row.v, 3)"))) == "share of views that passes gt(row.v, 3)"
    assert str(Figure(Kind.ROWS_PER_S, ("views",))) == "rows of views a second of event time"


def test_a_tally_that_was_only_counted_is_exact() -> None:
    assert Tally(3, 4).estimate == Estimate(0.75, Origin.EXACT)
    assert Tally(3, 4, 0.1).estimate == Estimate(0.75, Origin.ESTIMATED, 0.1)


def test_nothing_counted_is_not_zero() -> None:
    assert Tally(0, 0).estimate is None
    assert Tally(0, 4).estimate == Estimate(0.0, Origin.EXACT)


@given(COUNTS, st.integers(1, 10**6))
def test_a_batch_that_saw_nothing_changes_nothing(part: int, whole: int) -> None:
    assert Tally(part, whole).folded(Tally(0, 0)) == Tally(part, whole)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_folding_equal_shares_gives_the_share(wholes: list[int]) -> None:
    tally = Tally(wholes[0] * 0.25, wholes[0])
    for whole in wholes[1:]:
        tally = tally.folded(Tally(whole * 0.25, whole))
    assert tally.estimate is not None
    assert tally.estimate.value == pytest.approx(0.25)


def test_a_change_shows_within_three_batches() -> None:
    tally = Tally(10, 100)
    for _ in range(20):
        tally = tally.folded(Tally(10, 100))
    for _ in range(3):
        tally = tally.folded(Tally(90, 100))
    assert tally.estimate is not None
    assert 0.75 < tally.estimate.value < 0.9


def test_errors_of_tallies_are_weighted_not_averaged_away() -> None:
    assert (Tally(1, 10, 0.2) + Tally(1, 30, 0.0)).relative_error == pytest.approx(0.05)
    assert Tally(1, 10, 0.2).folded(Tally(1, 10, 0.2)).relative_error == pytest.approx(0.2)


@pytest.mark.parametrize("numbers", [(-1, 1, 0), (1, -1, 0), (1, 1, -1)])
def test_a_tally_is_not_negative(numbers: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="not negative"):
        Tally(*numbers)


def test_a_product_is_known_as_little_as_its_least_known_part() -> None:
    counted, estimated = Estimate(2.0, Origin.EXACT), Estimate(3.0, Origin.ESTIMATED, 0.1)
    assert product([counted, counted]) == Estimate(4.0, Origin.EXACT)
    assert product([counted, estimated]) == Estimate(6.0, Origin.ESTIMATED, 0.1)
    assert product([estimated, Estimate(0.5, Origin.ASSUMED)]) == Estimate(1.5, Origin.ASSUMED)
