"""Queries of AJoin's template (Fig. 14), joins of two to five streams mixed, and how similar they are (Eq. 3).

A query joins a, b, ... in a chain on random attributes, selects about half of each stream by a constant that no other
query uses, and has a window of 1, 2 or 3 s between neighbours.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.data.workloads import ATTRIBUTE_COUNT, STREAM_NAMES, time_bound

SIZES = (2, 3, 4, 5)
WINDOWS_S = (1, 2, 3)
Side = tuple[str, int]
"""A stream and the number of one of its attributes."""


@dataclass(frozen=True)
class TemplateQuery:
    """`joins[i]` has the attributes by which stream i and its right neighbour are joined."""

    joins: tuple[tuple[int, int], ...]
    selections: tuple[str, ...]
    window_s: int

    @property
    def streams(self) -> tuple[str, ...]:
        return STREAM_NAMES[: len(self.joins) + 1]

    @property
    def sql(self) -> str:
        return self.selecting()

    def selecting(self, *further: str) -> str:
        """The query with further output columns."""
        output = ", ".join((*(f"{stream}.id AS {stream}_id" for stream in self.streams), *further))
        joined = "".join(
            f" JOIN {right} ON {left}.x{left_key} = {right}.x{right_key} AND {time_bound(left, right, self.window_s)}"
            for (left_key, right_key), left, right in zip(self.joins, self.streams, self.streams[1:], strict=False)
        )
        return f"SELECT {output} FROM a{joined} WHERE {' AND '.join(self.selections)}"

    @property
    def join_attributes(self) -> set[Side]:
        left = zip(self.streams, (key for key, _ in self.joins), strict=False)
        right = zip(self.streams[1:], (key for _, key in self.joins), strict=False)
        return {*left, *right}


def pattern(size: int) -> TemplateQuery:
    """The pattern query of a size: neighbours joined on a pair of attributes of their own, as far as these go."""
    joins = tuple(((2 * i) % ATTRIBUTE_COUNT, (2 * i + 1) % ATTRIBUTE_COUNT) for i in range(size - 1))
    return TemplateQuery(joins, (), WINDOWS_S[0])


def similarity(query: TemplateQuery, other: TemplateQuery) -> float:
    """Eq. 3: common sources times common sources with common join attributes, over all sources of `other` squared."""
    common = set(query.streams) & set(other.streams)
    common_attributes = {stream for stream, _ in query.join_attributes & other.join_attributes}
    return len(common) * len(common_attributes) / len(other.streams) ** 2


def mean_similarity(queries: Iterable[TemplateQuery]) -> float:
    """Of each query to the pattern of its size."""
    values = [similarity(query, pattern(len(query.streams))) for query in queries]
    return sum(values) / len(values)


def template_queries(key_range: int, seed: int, share_of_pattern: float) -> Iterator[TemplateQuery]:
    """Queries without end, sizes in turn. A join takes the pattern's attributes with the chance `share_of_pattern`."""
    random_numbers = random.Random(seed)
    used: set[tuple[str, int]] = set()
    while True:
        for size in SIZES:
            joins = tuple(
                own if random_numbers.random() < share_of_pattern else _any_attributes(random_numbers)
                for own in pattern(size).joins
            )
            selections = tuple(
                _unused_selection(stream, key_range, used, random_numbers) for stream in STREAM_NAMES[:size]
            )
            yield TemplateQuery(joins, selections, random_numbers.choice(WINDOWS_S))


def _any_attributes(random_numbers: random.Random) -> tuple[int, int]:
    return random_numbers.randrange(ATTRIBUTE_COUNT), random_numbers.randrange(ATTRIBUTE_COUNT)


def _unused_selection(stream: str, key_range: int, used: set[tuple[str, int]], random_numbers: random.Random) -> str:
    lower, upper = int(key_range * 0.4), int(key_range * 0.6)
    while True:
        attribute, sign = random_numbers.randrange(ATTRIBUTE_COUNT), random_numbers.choice("<>")
        selection = f"{stream}.x{attribute} {sign}", random_numbers.randrange(lower, upper)
        if selection not in used:
            used.add(selection)
            return f"{selection[0]} {selection[1]}"
