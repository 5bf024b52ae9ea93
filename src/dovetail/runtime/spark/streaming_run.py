"""One streaming query of Spark, from its start to its end.

Py4J has one connection to Java a thread, and a call that waits occupies it: a signal handler that stopped the query
from within would wait for ever, and after Ctrl-C the next call would read the answer to this one. So no caller waits
inside Java. A thread of the run's own does, and callers wait for that thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

from dovetail.core.errors import SessionError
from dovetail.runtime.spark.batch_gate import LOOK_EVERY_S, BatchGate
from dovetail.runtime.spark.worker_errors import own_error

QUIET_PATIENCE_S = 20.0
"""How long a stop waits for Spark to come from one batch to the next, or to rest."""
INTERRUPT_PATIENCE_S = 60.0
"""How long an interrupted batch may take to end: Spark kills its tasks, so only our own code can take long."""


class StreamingRun:
    """Made before the query starts, because its first batch may begin before `start` returns.

    `failure` is what a batch failed with, in words for users; `is_own_failure`: no source is at fault.
    """

    def __init__(self, gate: BatchGate) -> None:
        self._gate = gate
        self._query: StreamingQuery | None = None
        self._end: Future[None] = Future()
        self.failure: Exception | None = None
        self.is_own_failure = False

    def begin(self, start: Callable[[], StreamingQuery], on_failure: Callable[[], None]) -> None:
        """`on_failure` is called before anybody hears that the query failed: another may take its place meanwhile."""
        query = self._query = start()

        def watch() -> None:
            try:
                query.awaitTermination()
            except Exception:
                on_failure()
                raise

        self._end = aside(watch, "dovetail-watch")

    def batch(self) -> AbstractContextManager[None]:
        """Around each batch: it begins when the gate is open."""
        return self._gate.passed(self.is_over)

    def is_over(self) -> bool:
        """As Java says now: True as soon as a stop has begun."""
        if self._query is None:
            return False
        try:
            return not self._query.isActive
        except (Py4JError, OSError):
            return True  # Java has gone

    def await_end(self, timeout_s: float | None) -> bool:
        """Until the query has ended; False when the time is up first. Raises what ended it."""
        try:
            self._end.result(timeout_s)
        except TimeoutError:
            return False
        except Exception as error:
            # Spark's exception wraps ours in pages of stack traces from both sides.
            found = self.failure or own_error(error)
            if found is error:
                raise
            raise found from None
        return True

    def await_settled(self) -> None:
        """Until it is clear what follows the failed query."""
        wait([self._end])

    def process_all_available(self) -> None:
        if self._query is not None:
            aside(self._query.processAllAvailable, "dovetail-drain").result()

    def stop(self) -> None:
        """End it; a batch that is past the gate is interrupted."""
        if self._query is None:
            return
        self._await_quiet(self._query)
        try:
            aside(self._query.stop, "dovetail-interrupt").result(INTERRUPT_PATIENCE_S)
        except TimeoutError:
            raise SessionError(
                f"the batch under way does not end, {INTERRUPT_PATIENCE_S:.0f} s after it was interrupted",
                hint="end the process: the batch runs again after the next start",
            ) from None
        # So that whoever asks after this call hears of the end.
        wait([self._end], INTERRUPT_PATIENCE_S)

    def _await_quiet(self, query: StreamingQuery) -> None:
        """Until the next batch has come to the gate or none is on its way: Spark logs what a stop interrupts before."""
        deadline = time.monotonic() + QUIET_PATIENCE_S

        def look() -> None:
            while not self._gate.is_reached and time.monotonic() < deadline and query.status["isTriggerActive"]:
                time.sleep(LOOK_EVERY_S)

        aside(look, "dovetail-look").result()


def aside(call: Callable[[], object], name: str, *, is_awaited_at_exit: bool = False) -> Future[None]:
    """The call in a thread of its own, and with it on a connection of its own."""
    made: Future[None] = Future()

    def run() -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - whoever waits for it gets it
            made.set_exception(error)
        else:
            made.set_result(None)

    threading.Thread(target=run, name=name, daemon=not is_awaited_at_exit).start()
    return made
