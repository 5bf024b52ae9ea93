"""The order of ranks under which most of the wanted intermediates may be probed.

    wanted: r probes (s * t * u), s probes (t * u)        t < u < s < r allows both
    wanted: a probes (b * c), c probes (a * b)            no order allows both: the start that brings more rows wins

A start may probe an intermediate only if it ranks above all its members: then it sees earlier batches of them only,
and these the store holds before the batch begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class WantedProbe:
    """`start` would like to probe an intermediate of `members` (stores all of them); `weight` says how much."""

    start: str
    members: frozenset[str]
    weight: float


def choose_ranks(
    stores: Iterable[str], wanted: Iterable[WantedProbe], rows_by_store: Mapping[str, float]
) -> tuple[str, ...]:
    """All stores, the lowest rank first; where nothing else decides, stores with fewer rows come first."""
    below: dict[str, set[str]] = {store: set() for store in stores}
    for probe in sorted(wanted, key=lambda each: (-each.weight, each.start, sorted(each.members))):
        if not any(probe.start in _all_below(member, below) for member in probe.members):
            below[probe.start] |= probe.members
    order: list[str] = []
    waiting = sorted(below, key=lambda store: (rows_by_store.get(store, 0.0), store))
    while waiting:
        following = next(store for store in waiting if below[store] <= set(order))
        waiting.remove(following)
        order.append(following)
    return tuple(order)


def _all_below(store: str, below: Mapping[str, set[str]]) -> set[str]:
    """The store and all that must rank lower, directly or not."""
    found = {store}
    frontier = [store]
    while frontier:
        new = below[frontier.pop()] - found
        found |= new
        frontier.extend(new)
    return found
