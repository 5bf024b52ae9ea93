"""What follows from an object alone is made once for it, however many batches ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Subject = TypeVar("Subject")
Made = TypeVar("Made")
KEPT = 4


class OncePer(Generic[Subject, Made]):
    """Keeps what was made of the last few objects, which never change. By identity: comparing them costs more.

    >>> made = OncePer(lambda words: [print("made"), len(words)][1])
    >>> words = ("a", "b")
    >>> made.of(words), made.of(words)
    made
    (2, 2)
    """

    def __init__(self, make: Callable[[Subject], Made]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: dict[int, tuple[Subject, Made]] = {}

    def of(self, subject: Subject) -> Made:
        # The object is kept, too: as long as it lives no other has its id.
        found = self._made.get(id(subject))
        if found is None:
            found = subject, self._make(subject)
            with self._lock:
                self._made[id(subject)] = found
                while len(self._made) > KEPT:
                    del self._made[next(iter(self._made))]
        return found[1]
