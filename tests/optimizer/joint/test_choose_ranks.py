from __future__ import annotations

from random import Random

import pytest

from dovetail.optimizer.joint.choose_ranks import WantedProbe, choose_ranks


def wanted(start: str, members: str, weight: float = 1.0) -> WantedProbe:
    return WantedProbe(start, frozenset(members), weight)


def allows(order: tuple[str, ...], probe: WantedProbe) -> bool:
    return all(order.index(member) < order.index(probe.start) for member in probe.members)


def test_a_start_ranks_above_what_it_probes() -> None:
    assert choose_ranks("rstu", [wanted("r", "stu"), wanted("s", "tu")], {}) == ("t", "u", "s", "r")


def test_of_two_that_exclude_each_other_the_weightier_wins() -> None:
    probes = [wanted("a", "bc", 1.0), wanted("c", "ab", 5.0)]
    order = choose_ranks("abc", probes, {})
    assert allows(order, probes[1])
    assert not allows(order, probes[0])


def test_fewer_rows_rank_lower_where_nothing_else_decides() -> None:
    assert choose_ranks("abc", [], {"a": 3.0, "b": 1.0, "c": 2.0}) == ("b", "c", "a")


@pytest.mark.parametrize("seed", range(50))
def test_every_order_is_complete_and_allows_the_weightiest(seed: int) -> None:
    rng = Random(seed)
    stores = "abcdef"
    probes = []
    for weight in range(rng.randint(1, 8)):
        start, *members = rng.sample(stores, rng.randint(3, 5))
        probes.append(WantedProbe(start, frozenset(members), float(weight)))
    order = choose_ranks(stores, rng.sample(probes, len(probes)), {})
    assert sorted(order) == list(stores)
    assert allows(order, probes[-1])
