from __future__ import annotations

from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st

from dovetail.query.join_query import TimeBound
from dovetail.query.time_closure import UpperByPair, close_time_bounds

NAMES = "abcd"
PAIRS = st.sampled_from([(x, y) for x in NAMES for y in NAMES if x != y])
# Not negative: bounds that contradict each other have no shortest path.
BOUNDS = st.lists(
    st.builds(lambda pair, upper: TimeBound(pair[0], pair[1], upper), PAIRS, st.integers(0, 20)), max_size=8
)


def shortest_paths(bounds: list[TimeBound]) -> UpperByPair:
    """By trying every path."""
    best: UpperByPair = {}
    for length in (2, 3, 4):
        for path in permutations(NAMES, length):
            steps = [[b.upper_us for b in bounds if (b.earlier, b.later) == pair] for pair in pairwise(path)]
            if all(steps):
                total = sum(map(min, steps))
                pair = (path[0], path[-1])
                best[pair] = min(total, best.get(pair, total))
    return best


@given(BOUNDS)
def test_every_pair_gets_its_shortest_path(bounds: list[TimeBound]) -> None:
    assert close_time_bounds(NAMES, bounds) == shortest_paths(bounds)


def test_a_chain_bounds_its_ends_in_both_directions() -> None:
    bounds = [TimeBound("a", "b", 5), TimeBound("b", "a", 1), TimeBound("b", "c", 3), TimeBound("c", "b", -2)]
    closed = close_time_bounds("abc", bounds)
    assert closed["a", "c"] == 8
    assert closed["c", "a"] == -1


def test_of_two_bounds_on_a_pair_the_tighter_counts() -> None:
    assert close_time_bounds("ab", [TimeBound("a", "b", 5), TimeBound("a", "b", 2)]) == {("a", "b"): 2}


def test_a_detour_can_be_tighter_than_the_stated_bound() -> None:
    bounds = [TimeBound("a", "c", 100), TimeBound("a", "b", 5), TimeBound("b", "c", 3)]
    assert close_time_bounds("abc", bounds)["a", "c"] == 8


def test_no_bounds_imply_none() -> None:
    assert close_time_bounds("abc", []) == {}
    assert ("c", "a") not in close_time_bounds("abc", [TimeBound("a", "b", 1), TimeBound("b", "c", 1)])
