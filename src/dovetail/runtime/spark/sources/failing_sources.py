"""Sources that fail are left out of the streaming query, tried again ever more rarely, and come back by themselves.

Spark reads all streams in one streaming query, which ends when one of its sources fails. Which one that was is found by
asking each of them alone. The others start anew without it; what it has sent meanwhile comes once it is back.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from dovetail.core.clock import Clock, system_clock
from dovetail.core.errors import StreamError
from dovetail.query.stream_spec import StreamSpec
from dovetail.runtime.source_failure import SourceFailure

FIRST_RETRY_S, SLOWEST_RETRY_S = 1.0, 60.0
_log = logging.getLogger("dovetail")

CheckSource = Callable[[StreamSpec], None]
"""Raises StreamError if the source cannot be read."""


class FailingSources:
    """Thread-safe. `check` asks a source, `on_return` is told of streams whose sources answer again."""

    def __init__(
        self, check: CheckSource, on_return: Callable[[set[str]], None], *, clock: Clock = system_clock
    ) -> None:
        self._check = check
        self._on_return = on_return
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: dict[str, SourceFailure] = {}
        self._specs: dict[str, StreamSpec] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def failures(self) -> Mapping[str, SourceFailure]:
        """By stream, as they are now."""
        with self._lock:
            return dict(self._failures)

    def note(self, spec: StreamSpec, error: StreamError) -> None:
        """The source fails: it is left out until it answers again."""
        with self._lock:
            if spec.name not in self._failures:
                _log.warning(
                    "stream %s cannot be read and is left out until it can: %s. Queries on it wait, the others go on",
                    spec.name,
                    error.where or error.what,
                )
            known = self._failures.get(spec.name)
            cause = error.where or error.what
            since_s = self._clock() if known is None else known.since_s
            self._failures[spec.name] = SourceFailure(cause, since_s, 0 if known is None else known.retries)
            self._specs[spec.name] = spec

    def forget(self, stream: str) -> None:
        """It is declared anew, with a source that answers."""
        with self._lock:
            self._failures.pop(stream, None)

    def find(self, specs: Iterable[StreamSpec]) -> bool:
        """Ask each source alone; whether one of them fails that did not before."""
        found = False
        for spec in specs:
            if spec.name not in self.failures:
                try:
                    self._check(spec)
                except StreamError as error:
                    self.note(spec, error)
                    found = True
        return found

    def retry(self) -> set[str]:
        """Ask those that fail; the streams that answer again."""
        back = set()
        for name in sorted(self.failures):
            try:
                self._check(self._specs[name])
            except StreamError as error:
                with self._lock:
                    known = self._failures.get(name)
                    if known is not None:
                        cause = error.where or error.what
                        self._failures[name] = replace(known, cause=cause, retries=known.retries + 1)
            else:
                back.add(name)
                with self._lock:
                    self._failures.pop(name, None)
        return back

    def watch(self) -> None:
        """Try again in the background as long as one fails."""
        with self._lock:
            is_idle = self._thread is None or not self._thread.is_alive()
            if is_idle and self._failures and not self._ended.is_set():
                self._thread = threading.Thread(target=self._run, name="dovetail-sources", daemon=True)
                self._thread.start()

    def end(self) -> None:
        self._ended.set()

    def wait(self, seconds: float) -> bool:
        """False if the session ends meanwhile."""
        return not self._ended.wait(seconds)

    def _run(self) -> None:
        pause_s = FIRST_RETRY_S
        while self.failures and self.wait(pause_s):
            pause_s = min(pause_s * 2, SLOWEST_RETRY_S)
            back = self.retry()
            if back and not self._ended.is_set():
                _log.info("stream %s can be read again", ", ".join(sorted(back)))
                self._on_return(back)
