from __future__ import annotations

from typing import Any

import pytest

from dovetail.bench.placement_change import PlacementChange, placement_changes


def batch(number: int, ms: float, placed_in_batch: int | None, rows: int = 100) -> dict[str, Any]:
    return {
        "batchId": number,
        "batchDuration": ms,
        "shipped": {"rows": rows},
        "placement": {"placedInBatch": placed_in_batch},
    }


def test_a_change_is_held_against_its_neighbours() -> None:
    """The batch before one with a change knows of it already: it is taken at that edge."""
    durations = [900, 100, 110, 100, 130, 100, 90, 100]
    run = [batch(n, ms, None if n < 3 else 4, 100 if n < 4 else 60) for n, ms in enumerate(durations)]
    assert placement_changes(run) == [PlacementChange(4, 0.13, 0.1, 60, 100)]
    assert placement_changes(run)[0].lengthened_by == pytest.approx(0.3)


def test_what_changes_while_a_session_learns_or_not_at_all_is_left_out() -> None:
    assert placement_changes([batch(n, 100, None) for n in range(6)]) == []
    assert placement_changes([batch(n, 100, 1) for n in range(6)]) == []
    assert placement_changes([batch(n, 100, 9) for n in range(6)]) == []
    plain = [{key: value for key, value in batch(n, 100, 4).items() if key != "placement"} for n in range(6)]
    assert placement_changes(plain) == []
