from __future__ import annotations

import pytest

from dovetail.engine.progress.figures import BatchFigures, Durations, StreamFigures
from dovetail.engine.progress.recent_batches import COMPARED, REMEMBERED, RecentBatches


def batch(number: int, finished_at: float, rows: int, *, epoch: int = 1, hop_s: float = 0.1) -> BatchFigures:
    return BatchFigures(
        number,
        finished_at,
        Durations(0.0, 0.0, 0.0),
        epoch=epoch,
        seconds_by_part={"source": 0.02, "receive": 0.01, "store": 0.03, "hop 1": hop_s, "statistics": 9.0},
        streams=(StreamFigures("a", rows, 0, None, False),),
    )


def note(recent: RecentBatches, figures: BatchFigures) -> BatchFigures:
    rated = recent.rated(figures)
    recent.note(rated)
    return rated


def test_rows_are_counted_by_the_clock_from_the_first_batch_on() -> None:
    recent = RecentBatches()
    assert recent.rows_per_s("a") is None
    note(recent, batch(0, 100.0, 7_000))
    assert recent.rows_per_s("a") is None
    note(recent, batch(1, 102.0, 600))
    assert note(recent, batch(2, 110.0, 400)).input_rows_per_s == 100.0
    assert (recent.rows_per_s("a"), recent.rows_per_s("b")) == (100.0, None)


def test_a_clock_that_stands_still_gives_no_rate() -> None:
    recent = RecentBatches()
    for number in range(3):
        note(recent, batch(number, 100.0, 5))
    assert recent.rows_per_s("a") is None


def test_old_batches_are_forgotten_and_one_told_twice_counts_once() -> None:
    recent = RecentBatches()
    count = REMEMBERED + COMPARED
    for number in range(count):
        rated = note(recent, batch(number, float(number), 1 if number < REMEMBERED else 10))
        recent.note(rated)
    assert recent.rows_per_s("a") == 10.0
    assert [figures.batch for figures in recent.batches] == list(range(COMPARED, count))


def test_usual_times_are_medians_under_the_last_plan_where_rows_came() -> None:
    recent = RecentBatches()
    assert recent.usual_times() is None
    recent.note(batch(0, 0.0, 5, epoch=1, hop_s=50.0))
    for number, hop_s in enumerate((0.3, 0.1, 0.2), 1):
        recent.note(batch(number, float(number), 5, epoch=2, hop_s=hop_s))
    recent.note(batch(4, 4.0, 0, epoch=2, hop_s=70.0))
    assert recent.usual_times() == pytest.approx((0.06, 0.2))
