"""Routing tables of key groups: what they refuse, and what they say of uses."""

from __future__ import annotations

import pytest

from dovetail.plan.placement import Placement, Placements, even_placement, use_of
from dovetail.plan.store_plan import ROW, IndexPlan
from dovetail.query.expression import Column
from dovetail.query.types import INT

EVEN = even_placement(4, 2)
CROSSED = Placement((0, 1, 0, 1), 2)
KEY = Column(ROW, "k", INT)


@pytest.mark.parametrize(
    ("owners", "partitions"),
    [((), 1), ((0, 0, 0), 1), ((0, 1, 1, 0, 1), 2), ((0, 2), 2), ((-1, 0), 2), ((0, 0), 0)],
)
def test_placements_that_are_no_routing_table_are_refused(owners: tuple[int, ...], partitions: int) -> None:
    with pytest.raises(ValueError, match=r"power of two|numbered 0\.\.n-1|at least one partition"):
        Placement(owners, partitions)


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 8])
def test_an_even_placement_gives_every_partition_its_share(partitions: int) -> None:
    placement = even_placement(8, partitions)
    assert (placement.group_count, placement.partition_count) == (8, partitions)
    sizes = [placement.partition_by_group.count(partition) for partition in range(partitions)]
    assert max(sizes) - min(sizes) <= 1
    ranges = [placement.group_ranges(partition) for partition in range(partitions)]
    assert all(len(own) == 1 for own in ranges)
    assert [group for own in ranges for lower, upper in own for group in range(lower, upper)] == list(range(8))


def test_scattered_key_groups_come_as_few_ranges() -> None:
    placement = Placement((0, 0, 1, 0, 1, 1, 1, 0), 3)
    assert placement.group_ranges(0) == [(0, 2), (3, 4), (7, 8)]
    assert placement.group_ranges(1) == [(2, 3), (4, 7)]
    assert placement.group_ranges(2) == []


def test_rows_of_one_key_are_one_use_however_they_are_sorted() -> None:
    assert use_of("a", IndexPlan((KEY,))) == use_of("a", IndexPlan((KEY,), order=KEY)) == ("a", "[k]")


def test_special_placements_have_the_key_groups_and_partitions_of_the_usual_one() -> None:
    for other in (even_placement(8, 2), even_placement(4, 3)):
        with pytest.raises(ValueError, match="partitions, where usual are 4 on 2"):
            Placements(EVEN, (("a", "[k]", other),))


def test_a_use_has_one_placement() -> None:
    with pytest.raises(ValueError, match="one placement"):
        Placements(EVEN, (("a", "[k]", CROSSED), ("a", "[k]", EVEN)))


def test_equal_placements_are_equal_records() -> None:
    one = Placements.of(EVEN, {("b", "[k]"): CROSSED, ("a", "[k]"): CROSSED, ("c", "[k]"): EVEN})
    assert one == Placements(EVEN, (("a", "[k]", CROSSED), ("b", "[k]", CROSSED)))
    assert one.of_use(("a", "[k]")) == CROSSED
    assert one.of_use(("c", "[k]")) == EVEN
    assert one.only({("b", "[k]")}) == Placements(EVEN, (("b", "[k]", CROSSED),))
