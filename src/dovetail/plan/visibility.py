"""Which stored rows a probe may see, so that each result appears exactly once (B3).

A result is produced by its newest member. Members of one batch are ordered by rank, and the one of the
*lowest* rank starts the probe: it sees the rows of this batch in relations of higher rank, and only
earlier batches in relations of lower rank.

    ranks A < B < C, one batch:   dA probes B+dB, C+dC      dB probes A, C+dC      dC probes A, B

Every combination of old and new rows has exactly one new member of lowest rank, hence one producer.
"""

from __future__ import annotations

from enum import Enum

Rank = tuple[int, str, int]
"""(place in the plan's order of stores, store, its occurrence in the query): a total order over a query's relations."""


class Visibility(Enum):
    """The batches whose rows a probe step may see."""

    EARLIER = "earlier batches"
    UP_TO_NOW = "earlier batches and this one"


def visibility(start: Rank, stored: Rank) -> Visibility:
    """What a probe started by a new row of rank `start` sees of the relation of rank `stored`."""
    if start == stored:
        raise ValueError("a relation does not probe itself; a self-join has two ranks")
    return Visibility.UP_TO_NOW if stored > start else Visibility.EARLIER
