"""The gate that every batch passes, so that a streaming query is stopped between two batches.

Spark's own stop interrupts the batch under way wherever it is. Here whoever wants to stop closes the gate first and
waits for the batch to commit: the next one waits at the gate until the gate opens again or its query has ended.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dovetail.core.errors import SessionError

LOOK_EVERY_S = 0.02
_SPARK_SEES_A_STOP = "py4j.protocol.Py4JJavaError: An error occurred while calling stop: java.lang.InterruptedException"


class BatchStopped(Exception):
    """Leaves a batch that a stop keeps from running, or interrupts.

    It raises, because Spark takes a batch that returns for done. Spark searches the text of what a Python batch
    raises, traceback included, for the words of this message: it takes their error for the stop that it is, and ends
    in silence. A longer text between them, such as the trace of the interrupted job, overflows the stack of its
    search, and the overflow is printed in a thousand lines.
    """

    def __init__(self) -> None:
        super().__init__(_SPARK_SEES_A_STOP)


class BatchGate:
    """Thread-safe. One batch is inside at a time, because a streaming query runs them one by one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: threading.Thread | None = None
        self._has_one_before_it = False
        self._is_closed = False
        self._is_shut = False

    @property
    def is_entered_here(self) -> bool:
        """Whether this very thread runs the batch, so that waiting for it would never end."""
        return self._inside is threading.current_thread()

    @property
    def is_shut(self) -> bool:
        return self._is_shut

    @property
    def is_reached(self) -> bool:
        """Whether a batch waits before it, or is inside: what Spark does between two batches is done."""
        return self._has_one_before_it or self._inside is not None

    @contextmanager
    def passed(self, is_over: Callable[[], bool]) -> Iterator[None]:
        """By a batch, from its first step to its commit. `is_over`: whether its streaming query has ended."""
        self._has_one_before_it = True
        try:
            while not self._entered():
                if is_over():
                    raise BatchStopped
        finally:
            self._has_one_before_it = False
        try:
            yield
        finally:
            with self._changed:
                self._inside = None
                self._changed.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Between two batches: once the one under way has ended, and until the end of the block none begins."""
        try:
            with self._changed:
                self._is_closed = True
                self._changed.wait_for(lambda: self._inside is None or self._is_shut)
                if self._is_shut:
                    raise SessionError("the session is stopping", hint="make the change after the next start")
            yield
        finally:
            with self._changed:
                self._is_closed = False
                self._changed.notify_all()

    def shut(self, timeout_s: float | None) -> bool:
        """Close it for good; True when no batch is inside any more, False when the time is up first."""
        with self._changed:
            self._is_shut = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._inside is None, timeout_s)

    def _entered(self) -> bool:
        with self._changed:
            if not self._changed.wait_for(lambda: not (self._is_closed or self._is_shut), LOOK_EVERY_S):
                return False
            self._inside = threading.current_thread()
            return True


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], BatchStopped))


# Py4J logs whatever a callback raises, with its trace.
logging.getLogger("py4j.clientserver").addFilter(_is_worth_a_line)
