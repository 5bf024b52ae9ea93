"""Carries one query's answers to one sink: committed batches only, in order, each at least once.

    look for the next batch with answers  ->  deliver it  ->  mark it  ->  look again ...
                                                |  fails: the same batch again, after a growing pause

A crash between deliver and mark delivers that batch again, with the same rows in the same order. Nothing waits in
memory: what is still to do is what the committed files say. The thread lives while there is something to do. To look
may fail as well, where a file is damaged or cannot be opened: then it looks again, after the same pauses.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from dovetail.core.known_secrets import without_secrets
from dovetail.store.manifest import ResultPart

LONGEST_ERROR = 500
_log = logging.getLogger("dovetail")

Look = Callable[[int], tuple[int, tuple[ResultPart, ...]]]
"""Given a batch, the next one with answers and their parts; without any, the newest committed batch and none."""

Glance = Callable[[int], tuple[int, tuple[ResultPart, ...]] | None]
"""As `Look`, of what is in memory: it neither waits nor fails. None where that is not enough to say."""

Deliver = Callable[[int, tuple[ResultPart, ...]], None]
"""Returns when the sink has all of the batch, raises when it may not."""

Mark = Callable[[int], None]
"""Remembers that everything up to this batch is delivered."""


def no_mark(_batch: int) -> None:
    """For sinks that nobody goes on with after a restart."""


@dataclass(frozen=True)
class Backoff:
    """Pauses between attempts at one batch: doubled every time, up to the longest."""

    first_s: float = 0.5
    longest_s: float = 60.0

    def pause_s(self, failures: int) -> float:
        return min(self.first_s * 2.0 ** min(failures - 1, 30), self.longest_s)


class Delivery:
    """Carries a query's answers to its sink, or to a function of `foreach_batch`.

    `error` is what keeps it from more, None if nothing does; it goes on trying.
    """

    def __init__(
        self,
        what: str,
        after: int,
        look: Look,
        glance: Glance,
        deliver: Deliver,
        mark: Mark,
        backoff: Backoff | None = None,
    ) -> None:
        """`what` names query and sink for the log; `after` is the last batch that is delivered already."""
        self._what = what
        self._delivered = after
        self._look = look
        self._glance = glance
        self._deliver = deliver
        self._mark = mark
        self._backoff = backoff or Backoff()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._has_news = False
        self._is_closing = False
        self.is_closed = False
        self.error: str | None = None

    @property
    def delivered_batch(self) -> int:
        """All committed answers up to this batch are delivered; batches without answers count once that is known."""
        delivered = self._delivered
        found = self._glance(delivered)
        return delivered if found is None or found[1] else found[0]

    @property
    def is_of_this_thread(self) -> bool:
        return self._thread is threading.current_thread()

    def wake(self) -> None:
        """There may be something to do. Never waits for the sink."""
        with self._changed:
            self._has_news = True
            if self._thread is not None or self.is_closed:
                return
            thread = threading.Thread(target=self._run, name=f"deliver {self._what}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                # The system gives no more threads: whoever wakes it next tries again.
                self._fail(error, "its thread", 1)
            else:
                self._thread = thread

    def await_delivered(self, timeout_s: float | None = None) -> bool:
        """Until all answers committed so far are delivered; False when the time is up or the delivery ended first."""
        self.wake()
        with self._changed:
            self._changed.wait_for(lambda: self._thread is None, timeout_s)
        return self._is_done()

    def drain(self) -> None:
        """Deliver what is committed and then nothing more; a sink that fails is not tried again."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self.error is None:
            self.wake()

    def close(self, timeout_s: float = 0.0) -> bool:
        """End it, once it has nothing to do or the time is up; True if all that is committed was delivered.

        A write under way cannot be taken back: whatever becomes of it, its batch is not marked any more.
        """
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._thread is None, timeout_s)
            self.is_closed = True
        return self._is_done()

    def _is_done(self) -> bool:
        found = self._glance(self._delivered)
        return found is not None and not found[1]

    def _run(self) -> None:
        failures = 0
        while self._goes_on(failures):
            place = f"after batch {self._delivered}"
            try:
                batch, parts = self._look(self._delivered)
                if parts:
                    place = f"batch {batch}"
                    self._deliver(batch, parts)
                    self._advance(batch)
            except BaseException as error:  # noqa: BLE001 - a sink may raise anything, and must be tried again
                failures += 1
                self._fail(error, place, failures)
            else:
                failures = 0
                if not parts and self._rests():
                    return

    def _goes_on(self, failures: int) -> bool:
        """After a pause if it failed; False when nobody wants it any more, and the thread ends."""
        with self._changed:
            if failures:
                self._changed.wait_for(lambda: self._is_closing, self._backoff.pause_s(failures))
            if self.is_closed or (self._is_closing and failures):
                self._rest()
                return False
            self._has_news = False
            return True

    def _rests(self) -> bool:
        """There was nothing to do: whether there is no news since that look either, and the thread ends."""
        with self._changed:
            self._works("everything is delivered")
            if not self._has_news:
                self._rest()
            return self._thread is None

    def _rest(self) -> None:
        """Under the lock, so that whoever wakes the delivery after its last look starts another thread."""
        self._thread = None
        self._changed.notify_all()

    def _advance(self, batch: int) -> None:
        with self._changed:
            if self.is_closed:
                return
            self._mark(batch)
            self._delivered = batch
            self._works(f"batch {batch} is delivered")
            self._changed.notify_all()

    def _works(self, how: str) -> None:
        if self.error is not None:
            _log.info("%s: works again, %s", self._what, how)
        self.error = None

    def _fail(self, error: BaseException, place: str, failures: int) -> None:
        text = f"{place}, attempt {failures}: {_first_line(error)}"
        if self.error is None:
            _log.warning("%s: %s", self._what, text)
        self.error = text


def _first_line(error: BaseException) -> str:
    """Errors of Spark go on for pages."""
    lines = [line for line in without_secrets(str(error)).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip() if lines else ''}"[:LONGEST_ERROR]
