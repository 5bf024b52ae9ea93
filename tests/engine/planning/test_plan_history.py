from __future__ import annotations

from dovetail.engine.planning.plan_history import MAX_CHANGES, PlanChange, PlanHistory


def test_a_change_is_judged_by_the_batches_before_and_after() -> None:
    history = PlanHistory()
    for run_ms in (900.0, 1000.0, 1100.0):
        history.note_batch(run_ms, 10)
    history.note_change(PlanChange(3, 2, ("data",), 0.4, 0.1))
    (change,) = history.changes
    assert (change.observed_before_ms, change.observed_after_ms) == (1000.0, None)
    history.note_batch(50.0, 10)
    history.note_batch(7.0, 0)
    (change,) = history.changes
    assert change.observed_after_ms == 50.0, "batches without rows say nothing"
    assert change.to_json()["expectedSeconds"] == {"before": 0.4, "after": 0.1}


def test_what_was_observed_stays_with_its_change() -> None:
    history = PlanHistory()
    history.note_batch(100.0, 1)
    history.note_change(PlanChange(1, 2, ()))
    history.note_batch(10.0, 1)
    history.note_change(PlanChange(2, 3, ()))
    history.note_batch(1.0, 1)
    first, second = history.changes
    assert (first.observed_before_ms, first.observed_after_ms) == (100.0, 10.0)
    assert (second.observed_before_ms, second.observed_after_ms) == (10.0, 1.0)


def test_only_the_newest_changes_are_kept() -> None:
    history = PlanHistory()
    for batch in range(MAX_CHANGES + 5):
        history.note_change(PlanChange(batch, batch, ()))
    assert [change.batch for change in history.changes] == list(range(5, MAX_CHANGES + 5))
