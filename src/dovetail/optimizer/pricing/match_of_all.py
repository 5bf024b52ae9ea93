"""How probable it is that several equalities hold at once.

    n.k = c.k, c.k = s.k, n.k = s.k    the third follows from the other two, so it lets everything pass that they do

Equalities of different columns count as independent. Of those that follow from each other the most selective ones
count: of three key columns, the two with more distinct keys say how rarely all are equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

Equated = tuple[Hashable, Hashable, float]
"""Two columns, and the probability that two rows have them equal."""


def match_of_all(equalities: Iterable[Equated]) -> float:
    """Their joint probability.

    >>> match_of_all([("n", "c", 0.04), ("c", "s", 0.04), ("n", "s", 0.04), ("x", "y", 0.5)])
    0.0008
    """
    parent: dict[Hashable, Hashable] = {}

    def root(column: Hashable) -> Hashable:
        while column in parent:
            column = parent[column]
        return column

    match = 1.0
    for one, other, probability in sorted(equalities, key=lambda equated: equated[2]):
        first, second = root(one), root(other)
        if first != second:
            parent[first] = second
            match *= probability
    return match
