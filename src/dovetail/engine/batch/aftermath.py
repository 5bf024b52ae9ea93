"""What follows a commit cannot fail the batch: what goes wrong there is logged and counted, and the rest goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from dovetail.core.known_secrets import without_secrets
from dovetail.engine.progress.figures import FailuresAfterCommit

T = TypeVar("T")
_log = logging.getLogger("dovetail")


class Aftermath:
    """Counts since the process began; progress shows it. Used by one thread, that of the batches."""

    def __init__(self) -> None:
        self.failures = FailuresAfterCommit()

    def attempt(self, batch: int, what: str, step: Callable[[], T], otherwise: T) -> T:
        """What the step gives, or `otherwise` if it fails. Only a process that ends is not held up."""
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - the batch is committed, whatever this is
            _log.exception("batch %d is committed, but %s failed", batch, what)
            last = f"batch {batch}: {what}: {type(error).__name__}: {without_secrets(str(error))}"
            self.failures = FailuresAfterCommit(self.failures.count + 1, last)
            return otherwise
