"""What was worked out of rows that never change, kept as long as somebody asks for it.

A bucket may live as long as the session, and queries come and go: what was made for those that ended must not stay.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

FORGOTTEN_AFTER = 16
"""What nobody asked for in so many batches goes: hardly anybody will."""


@dataclass
class BatchClock:
    """How many batches those who share it have seen."""

    batch: int = 0

    @property
    def is_time_to_forget(self) -> bool:
        return self.batch % FORGOTTEN_AFTER == 0

    def is_long_ago(self, batch: int) -> bool:
        return batch <= self.batch - FORGOTTEN_AFTER


class Derived:
    """By what it was made for."""

    def __init__(self, clock: BatchClock) -> None:
        self._clock = clock
        self._found: dict[Hashable, Any] = {}
        self._used_in: dict[Hashable, int] = {}

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """`make()`, once."""
        self._used_in[key] = self._clock.batch
        if key not in self._found:
            self._found[key] = make()
        found: T = self._found[key]
        return found

    def __getitem__(self, key: Hashable) -> Any:
        """What was made before."""
        self._used_in[key] = self._clock.batch
        return self._found[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    def forget_unused(self) -> None:
        """Between two batches: nobody may hold addresses of what goes."""
        for key in [each for each, batch in self._used_in.items() if self._clock.is_long_ago(batch)]:
            self._found.pop(key, None)
            del self._used_in[key]
