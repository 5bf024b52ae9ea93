from __future__ import annotations

import json

import pytest

from dovetail.stats.estimate import Estimate, Origin
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.observed import (
    FORGET_AFTER_BATCHES,
    MAX_STORED_BYTES,
    STALE_AFTER_BATCHES,
    BatchSeen,
    ObservedStats,
    changed,
)

SHARE = Figure(Kind.SELECTION, ("a", "p"))
RATE = Figure(Kind.ROWS_PER_S, ("a",))


def observed(batch: int, **tallies: Tally) -> ObservedStats:
    figures = {"share": SHARE, "rate": RATE}
    return ObservedStats().folded(BatchSeen(batch, {figures[name]: tally for name, tally in tallies.items()}))


def test_the_first_batch_counts_in_full() -> None:
    assert observed(0, share=Tally(300, 400)).estimate(SHARE) == Estimate(0.75, Origin.EXACT)


def test_what_no_batch_could_count_stays_unknown() -> None:
    assert observed(0, share=Tally(0, 0)).estimate(SHARE) is None


def test_what_was_not_seen_for_long_is_forgotten() -> None:
    stats = observed(0, share=Tally(1, 2))
    kept = stats.folded(BatchSeen(FORGET_AFTER_BATCHES - 1))
    assert kept.estimate(SHARE) is not None
    assert kept.folded(BatchSeen(FORGET_AFTER_BATCHES)).estimate(SHARE) is None


def test_a_figure_that_moved_by_more_than_the_factor_is_named() -> None:
    old = observed(0, share=Tally(10_000, 100_000), rate=Tally(10_000, 1))
    new = observed(1, share=Tally(40_000, 100_000), rate=Tally(15_000, 1))
    changes = changed(old, new, 2.0)
    assert [change.figure for change in changes] == [SHARE]
    assert str(changes[0]) == "share of a that passes p: 0.1 (counted) became 0.4 (counted)"
    assert [change.figure for change in changed(old, new, 1.3)] == [RATE, SHARE]
    assert [change.figure for change in changed(new, old, 2.0)] == [SHARE]


def test_a_figure_that_fell_to_nothing_moved() -> None:
    old, new = observed(0, share=Tally(500, 1000)), observed(1, share=Tally(0, 1000))
    assert len(changed(old, new, 2.0)) == len(changed(new, old, 2.0)) == 1
    assert changed(new, new, 2.0) == ()


def test_chance_is_no_change() -> None:
    old, new = observed(0, share=Tally(2, 1000)), observed(1, share=Tally(5, 1000))
    assert changed(old, new, 2.0) == ()
    old, new = observed(0, share=Tally(200, 1000, 0.9)), observed(1, share=Tally(500, 1000, 0.9))
    assert changed(old, new, 2.0) == ()


def test_what_is_newly_known_has_not_moved() -> None:
    assert changed(ObservedStats(), observed(0, share=Tally(1, 2)), 2.0) == ()


def test_a_factor_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match="above 1"):
        changed(ObservedStats(), ObservedStats(), 1.0)


def test_figures_outlive_a_restart() -> None:
    stats = observed(3, share=Tally(1, 3, 0.25), rate=Tally(7, 2))
    again = ObservedStats.from_json(json.loads(json.dumps(stats.to_json())))
    assert again.estimate(RATE) == Estimate(3.5, Origin.EXACT)
    assert again.tallies[SHARE] == Tally(1, 3, 0.25)
    assert again.last_batch_by_name == stats.last_batch_by_name


def test_stored_figures_stay_small_and_those_of_streams_and_joins_come_first() -> None:
    match = Figure(Kind.MATCH, ("a.k=b.k",))
    shares = {
        Figure(Kind.SELECTION, (f"store {i}", "p" * 100)): Tally(i / 7, i / 3 + 1, 0.123456789) for i in range(1000)
    }
    stored = ObservedStats().folded(BatchSeen(123_456, {**shares, match: Tally(1, 2)})).to_json()
    assert 50_000 < len(json.dumps(stored, separators=(",", ":"))) <= MAX_STORED_BYTES
    assert stored[0][:2] == ["MATCH", "a.k=b.k"]


def test_a_figure_that_no_batch_brings_any_more_gets_old() -> None:
    stats = ObservedStats().folded(BatchSeen(1, {SHARE: Tally(1, 2)}))
    assert stats.is_fresh(SHARE)
    other = Figure(Kind.BATCH_ROWS, ("other",))
    for batch in range(2, 2 + STALE_AFTER_BATCHES):
        stats = stats.folded(BatchSeen(batch, {other: Tally(1, 1)}))
    assert not stats.is_fresh(SHARE)
    assert stats.is_fresh(other)
    assert stats.estimate(SHARE) is not None, "old is better than unknown"


def test_where_few_batches_are_asked_a_figure_is_fresh_for_as_many_of_them() -> None:
    other = Figure(Kind.BATCH_ROWS, ("b",))
    stats = ObservedStats().folded(BatchSeen(0, {SHARE: Tally(1, 2)}))
    for batch in range(1, 8 * STALE_AFTER_BATCHES):
        stats = stats.folded(BatchSeen(batch, {other: Tally(1, 1)} if batch % 8 == 0 else None))
    assert stats.tallied == STALE_AFTER_BATCHES
    assert stats.is_fresh(SHARE)
    assert not stats.folded(BatchSeen(8 * STALE_AFTER_BATCHES, {other: Tally(1, 1)})).is_fresh(SHARE)


def test_what_is_stored_is_made_again_only_when_a_figure_has_changed() -> None:
    known = ObservedStats().folded(BatchSeen(1, {SHARE: Tally(1, 2)}))
    stored = known.to_json()
    later = known.folded(BatchSeen(2, None, first_live_batch={"a": 1}))
    assert later.to_json() is stored
    assert later.tallies == known.tallies
    newest = later.folded(BatchSeen(3, {SHARE: Tally(2, 2)}))
    assert newest.to_json() != stored
    assert ObservedStats.from_json(newest.to_json()).tallies.keys() == {SHARE}
