"""Ctrl-C as a request: the demo ends in order and removes what it made."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType

PRESSES_TO_INTERRUPT = 3
"""An impatient second press must not leave files behind; someone who insists gets out at once."""


class StopRequest:
    """While entered, Ctrl-C only sets `is_made`."""

    def __init__(self) -> None:
        self._presses = 0
        self._handler_before: Callable[[int, FrameType | None], object] | int | None = None

    @property
    def is_made(self) -> bool:
        return self._presses > 0

    def __enter__(self) -> StopRequest:
        self._handler_before = signal.getsignal(signal.SIGINT)
        self.listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._handler_before)

    def listen(self) -> None:
        """Take Ctrl-C over; again after Spark's start, because PySpark sets a handler that cancels the batch."""
        signal.signal(signal.SIGINT, self._on_press)

    def _on_press(self, _signal: int, _frame: FrameType | None) -> None:
        self._presses += 1
        if self._presses >= PRESSES_TO_INTERRUPT:
            raise KeyboardInterrupt
