from __future__ import annotations

from itertools import permutations, product

import pytest

from dovetail.plan.visibility import Rank, Visibility, visibility

STORES = ("a", "b", "c", "d", "e")


def produces(start: int, is_new: tuple[bool, ...], ranks: list[Rank]) -> bool:
    """Whether a probe from relation `start` makes the result with these new and old members."""
    return is_new[start] and all(
        not is_new[other] or visibility(ranks[start], ranks[other]) is Visibility.UP_TO_NOW
        for other in range(len(ranks))
        if other != start
    )


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_every_mix_of_old_and_new_members_has_exactly_one_producer(count: int) -> None:
    for ranks in permutations([(store, 0) for store in STORES[:count]]):
        for is_new in product([False, True], repeat=count):
            producers = sum(produces(start, is_new, list(ranks)) for start in range(count))
            assert producers == (1 if any(is_new) else 0)


@pytest.mark.parametrize("occurrences", [(2,), (3,), (5,), (2, 1), (1, 2), (2, 2), (3, 1, 1)])
def test_self_joins_have_exactly_one_producer_too(occurrences: tuple[int, ...]) -> None:
    ranks = [(STORES[place], number) for place, times in enumerate(occurrences) for number in range(times)]
    for is_new in product([False, True], repeat=len(ranks)):
        producers = sum(produces(start, is_new, ranks) for start in range(len(ranks)))
        assert producers == (1 if any(is_new) else 0)


def test_the_drawing_in_the_docstring() -> None:
    a, b, c = ("a", 0), ("b", 0), ("c", 0)
    assert visibility(a, b) is visibility(a, c) is visibility(b, c) is Visibility.UP_TO_NOW
    assert visibility(b, a) is visibility(c, a) is visibility(c, b) is Visibility.EARLIER


def test_a_relation_does_not_probe_itself() -> None:
    with pytest.raises(ValueError, match="does not probe itself"):
        visibility(("a", 1), ("a", 1))
