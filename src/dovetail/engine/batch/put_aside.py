"""Where a batch fails with more queries than can be found one by one, some are put aside together.

Many at once fail by what they share, mostly a stream: some row of it, say. So it is tried to leave out who reads a
stream, the least read first. Of those put aside, halves come back with which the batch runs:

    a-b a-b a-c b-c c-d d-d     fails with whoever joins a and b
                    c-d d-d     runs: readers of b are put aside
            b-c     c-d d-d     runs: one of them is back
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set

StreamsOf = Callable[[str], Set[str]]
"""The streams that a query reads."""
RunsWithout = Callable[[Sequence[str]], bool]
"""Whether the batch runs without these; raises `OutOfTries`."""


class OutOfTries(Exception):
    """The batch has been tried often enough."""


def least_to_put_aside(
    suspects: Sequence[str], aside: Sequence[str], streams_of: StreamsOf, runs_without: RunsWithout
) -> list[str]:
    """Without `aside` the batch runs; returns fewer of the suspects, if tries suffice to find out."""
    least = sorted(aside, key=lambda query: sorted(streams_of(query)))
    try:
        for readers in _readers(suspects, streams_of):
            if len(readers) >= len(least):
                break
            if runs_without(readers):
                least = readers
                break
        halves = deque(_halves(least))
        while halves:
            half = halves.popleft()
            others = [query for query in least if query not in half]
            if runs_without(others):
                least = others
            else:
                halves.extend(_halves(half))
    except OutOfTries:
        pass
    return least


def _readers(suspects: Sequence[str], streams_of: StreamsOf) -> list[list[str]]:
    """By stream, the fewest first."""
    by_stream: dict[str, list[str]] = {}
    for query in suspects:
        for stream in sorted(streams_of(query)):
            by_stream.setdefault(stream, []).append(query)
    return sorted(by_stream.values(), key=len)


def _halves(queries: Sequence[str]) -> Iterator[Sequence[str]]:
    middle = len(queries) // 2
    return (half for half in (queries[:middle], queries[middle:]) if half and middle)
