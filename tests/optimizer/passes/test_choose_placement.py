"""What is said of placements that changed."""

from __future__ import annotations

import pytest

from dovetail.optimizer.passes.choose_placement import placement_changes
from dovetail.plan.placement import Placement, Placements, UseName, even_placement

EVEN = even_placement(4, 2)
CROSSED = Placement((0, 1, 0, 1), 2)
A, B, NEW = ("a", "[k]"), ("b", "[k]"), ("c", "[k]")


@pytest.mark.parametrize(
    ("usual", "special_before", "special_now", "changes"),
    [
        (EVEN, {}, {}, []),
        (EVEN, {A: CROSSED}, {A: CROSSED}, []),
        (CROSSED, {}, {}, ["2 of 4 key groups are placed anew"]),
        (EVEN, {}, {A: CROSSED}, ["2 of 4 key groups of a[k] are placed anew"]),
        (EVEN, {B: CROSSED}, {}, ["2 of 4 key groups of b[k] are placed anew"]),
        (CROSSED, {}, {A: EVEN}, ["2 of 4 key groups are placed anew"]),
        (EVEN, {}, {NEW: CROSSED}, []),
        (even_placement(4, 3), {A: CROSSED}, {}, ["3 partitions instead of 2"]),
    ],
)
def test_a_sentence_says_what_changed(
    usual: Placement,
    special_before: dict[UseName, Placement],
    special_now: dict[UseName, Placement],
    changes: list[str],
) -> None:
    before, now = Placements.of(EVEN, special_before), Placements.of(usual, special_now)
    assert placement_changes(before, now, {A, B}) == changes
