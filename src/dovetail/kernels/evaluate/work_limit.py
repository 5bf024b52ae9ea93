"""How long one evaluation may work: what is done in pieces is given up between two of them.

A task sets the limit for its thread. Nobody can say beforehand what `rpad(s, 16000000, 'x')` takes for a batch, and the
time limit of a query is looked at only after each piece of its work: this is what ends a piece.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time

from dovetail.core.errors import EvaluationError

_of_thread = threading.local()


@contextmanager
def work_limit(limit_ms: float | None) -> Iterator[None]:
    """Inside, no evaluation of this thread may work longer; None: as long as it takes."""
    before = getattr(_of_thread, "limit_ms", None)
    _of_thread.limit_ms = limit_ms
    try:
        yield
    finally:
        _of_thread.limit_ms = before


class WorkClock:
    """Counts what its thread works, from the first check on."""

    def __init__(self) -> None:
        self._limit_ms: float | None = getattr(_of_thread, "limit_ms", None)
        self._began: float | None = None

    def check(self) -> None:
        """Raises when the time is up."""
        if self._limit_ms is None:
            return
        now = thread_time()
        if self._began is None:
            self._began = now
        elif (now - self._began) * 1e3 > self._limit_ms:
            raise EvaluationError(
                f"takes more than {self._limit_ms:,.0f} ms of work for the rows of one batch",
                hint="ask for shorter texts, or raise max_query_ms_per_batch",
            )
