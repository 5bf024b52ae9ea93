from __future__ import annotations

import math

import pytest

from dovetail.query.expression import TRUE, Column
from dovetail.query.types import BOOLEAN
from dovetail.stats.catalog import StatsCatalog, edge_text
from dovetail.stats.estimate import Estimate, Origin
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.key_sketch import KeySketch
from dovetail.stats.key_stats import KeysSeen
from dovetail.stats.observed import STALE_AFTER_BATCHES, BatchSeen, ObservedStats

OK = Column("row", "ok", BOOLEAN)
EDGE = edge_text("b.y", "a.x")


def seen(tallies: dict[Figure, Tally]) -> ObservedStats:
    return ObservedStats().folded(BatchSeen(0, tallies))


def test_what_was_given_is_told_from_what_is_assumed() -> None:
    stats = StatsCatalog({"views": 7.0}, {"a.x=b.y": 0.5})
    assert stats.rows("views") == Estimate(7.0, Origin.GIVEN)
    assert stats.rows("other").origin is Origin.ASSUMED
    assert stats.match(EDGE) == Estimate(0.5, Origin.GIVEN)
    assert stats.match("a.x=c.z").origin is Origin.ASSUMED


def test_no_selection_keeps_every_row() -> None:
    assert StatsCatalog().selection(TRUE) == Estimate(1.0, Origin.GIVEN)
    assert 0 < StatsCatalog().selection(OK).value < 1


def test_given_beats_counted_beats_assumed() -> None:
    observed = seen(
        {
            Figure(Kind.LIVE_ROWS, ("views",)): Tally(90, 1),
            Figure(Kind.SELECTION, ("views", str(OK))): Tally(1, 4),
        }
    )
    assert StatsCatalog({"views": 7.0}, observed=observed).rows("views") == Estimate(7.0, Origin.GIVEN)
    stats = StatsCatalog().with_observed(observed)
    assert stats.rows("views") == Estimate(90.0, Origin.EXACT)
    assert stats.selection(OK, "views") == Estimate(0.25, Origin.EXACT)
    assert stats.selection(OK, "other").origin is Origin.ASSUMED
    given = StatsCatalog(selection_share={("views", str(OK)): 0.9}, observed=observed)
    assert given.selection(OK, "views") == Estimate(0.9, Origin.GIVEN)


def test_a_match_seen_by_a_first_hop_beats_samples_and_those_beat_later_hops() -> None:
    tallies = {
        Figure(Kind.MATCH_AFTER_JOIN, (EDGE,)): Tally(1, 100),
        Figure(Kind.MATCH_SAMPLED, (EDGE,)): Tally(2, 100, 0.3),
        Figure(Kind.MATCH, (EDGE,)): Tally(3, 100),
    }
    found = []
    while tallies:
        found.append(StatsCatalog().with_observed(seen(tallies)).match(EDGE))
        tallies.popitem()
    expected = [Estimate(0.03, Origin.EXACT), Estimate(0.02, Origin.ESTIMATED, 0.3), Estimate(0.01, Origin.EXACT)]
    assert found == expected


def test_a_fresh_match_of_a_later_hop_beats_an_old_one_of_a_first_hop() -> None:
    observed = seen({Figure(Kind.MATCH, (EDGE,)): Tally(3, 100)})
    later = {Figure(Kind.MATCH_AFTER_JOIN, (EDGE,)): Tally(1, 100)}
    for batch in range(1, 1 + STALE_AFTER_BATCHES):
        observed = observed.folded(BatchSeen(batch, later))
    assert StatsCatalog().with_observed(observed).match(EDGE) == Estimate(0.01, Origin.EXACT)


def test_what_is_unknown_of_keys_and_steps_is_absent() -> None:
    stats = StatsCatalog()
    assert stats.distinct("a", "[k]") is None
    assert stats.step("a#1") is None
    assert (stats.batch_rows("a"), stats.rows_per_s("a"), stats.late_share("a"), stats.stored_rows("a")) == (None,) * 4
    assert stats.rows_by_group("a", "[k]") == ()
    assert stats.heavy_share_by_code("a", "[k]") == {}


def test_keys_are_answered_for_what_the_store_still_holds() -> None:
    observed = ObservedStats()
    for batch in range(3):
        keys = KeysSeen(4, (3, 1), {9: 2}, KeySketch((batch, 50)))
        observed = observed.folded(BatchSeen(batch, {}, {("a", "[k]"): keys}, {"a": max(batch - 1, 0)}))
    stats = StatsCatalog(observed=observed)
    assert stats.distinct("a", "[k]") == Estimate(3.0, Origin.EXACT)
    assert stats.rows_by_group("a", "[k]") == (3.0, 1.0)
    assert stats.heavy_share_by_code("a", "[k]") == {9: 0.5}


@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_an_estimate_is_a_number_that_is_not_negative(value: float) -> None:
    with pytest.raises(ValueError, match="not negative"):
        Estimate(value, Origin.GIVEN)


@pytest.mark.parametrize("origin", [Origin.GIVEN, Origin.EXACT, Origin.ASSUMED])
def test_only_an_estimated_value_has_an_error(origin: Origin) -> None:
    with pytest.raises(ValueError, match="error"):
        Estimate(1.0, origin, 0.1)
    with pytest.raises(ValueError, match="error"):
        Estimate(1.0, Origin.ESTIMATED)


def test_the_text_of_an_estimate_says_where_it_comes_from() -> None:
    texts = [str(Estimate(0.5, origin)) for origin in (Origin.GIVEN, Origin.EXACT, Origin.ASSUMED)]
    assert texts == ["0.5 (given)", "0.5 (counted)", "0.5 (assumed)"]
    assert str(Estimate(0.5, Origin.ESTIMATED, 0.07)) == "0.5 ±7% (estimated)"
