"""Every kind of file, damaged in every way, while stopped and while running: an error that names it, or exact answers.

And the power goes at every sync: the checkpoint opens, and nothing that was acknowledged is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.faults.damage import KINDS, ON_SPARK_ONLY
from benchmarks.faults.power_loss import Unsynced
from benchmarks.faults.try_damage import (
    Answers,
    Outcome,
    exact_after_power_losses,
    exact_answers,
    lost_after,
    record_power_losses,
    try_running,
    try_stopped,
)

IN_ONE_PROCESS = set(KINDS) - set(ON_SPARK_ONLY)


TOLD = frozenset({"manifest", "changelog entry", "layout", "result", "answers"})


@pytest.mark.parametrize(
    ("try_all", "most_told"),
    [
        (try_stopped, TOLD | {"backfill manifest"}),
        # A history that runs has its newest manifest in memory.
        pytest.param(try_running, TOLD, marks=pytest.mark.slow),
    ],
)
def test_no_damage_goes_unnoticed(
    tmp_path: Path, try_all: Callable[[Path, Answers], Iterator[Outcome]], most_told: frozenset[str]
) -> None:
    expected = exact_answers(tmp_path / "exact")
    outcomes = list(try_all(tmp_path, expected))
    assert {outcome.damage.kind for outcome in outcomes} == IN_ONE_PROCESS
    assert [outcome for outcome in outcomes if outcome.is_silent] == []
    assert [outcome for outcome in outcomes if not outcome.is_told_well] == []
    told = Counter(outcome.damage.kind for outcome in outcomes if outcome.error is not None)
    assert set(told) >= most_told


@pytest.mark.parametrize("unsynced", list(Unsynced))
def test_a_power_loss_at_any_sync_leaves_a_checkpoint_that_opens_with_all_that_was_acknowledged(
    tmp_path: Path, unsynced: Unsynced
) -> None:
    expected = exact_after_power_losses(tmp_path / "exact")
    moments = record_power_losses(tmp_path / "recorded" / "checkpoint")
    assert len(moments) > 25
    for moment in moments:
        assert lost_after(moment, tmp_path / str(moment.number), unsynced, expected) == [], moment.number
