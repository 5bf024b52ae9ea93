"""Where a batch fails with more queries than can be found one by one, some are put aside together.

Many at once fail by what they share, mostly a stream: some row of it, say. So it is tried to leave out who reads a
stream, the least read first. Of those put aside, halves come back with which the batch runs:

    a-b a-b a-c b-c c-d d-d     fails with whoever joins a and b
                    c-d d-d     runs: readers of b are put aside
            b-c     c-d d-d     runs: one of them is back
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence, Set

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
    group = _Aside(aside, runs_without)
    try:
        group.only_readers(_readers(suspects, streams_of))
        group.least.sort(key=lambda query: sorted(streams_of(query)))
        group.bring_back()
    except OutOfTries:
        pass
    return group.least


class _Aside:
    """`least` are the fewest so far without whom the batch is known to run."""

    def __init__(self, aside: Sequence[str], runs_without: RunsWithout) -> None:
        self.least = list(aside)
        self._runs_without = runs_without

    def only_readers(self, by_stream: list[list[str]]) -> None:
        for readers in by_stream:
            if len(readers) >= len(self.least):
                return
            if self._runs_without(readers):
                self.least = readers
                return

    def bring_back(self) -> None:
        """The batch fails with each of the blocks. One that has both kinds of queries in it is worth more tries."""
        blocks = deque([list(self.least)])
        while blocks:
            block = blocks.popleft()
            if len(block) < 2:
                continue
            first, second = block[: len(block) // 2], block[len(block) // 2 :]
            if self._is_back(first):
                blocks.appendleft(second)
            elif self._is_back(second):
                blocks.appendleft(first)
            else:
                blocks.extend((first, second))

    def _is_back(self, queries: list[str]) -> bool:
        others = [query for query in self.least if query not in queries]
        if self._runs_without(others):
            self.least = others
            return True
        return False


def _readers(suspects: Sequence[str], streams_of: StreamsOf) -> list[list[str]]:
    """By stream, the fewest first."""
    by_stream: dict[str, list[str]] = {}
    for query in suspects:
        for stream in sorted(streams_of(query)):
            by_stream.setdefault(stream, []).append(query)
    return sorted(by_stream.values(), key=len)
