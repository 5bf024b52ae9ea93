"""Statistics are advice: whatever goes wrong while one is taken fails no batch and is charged to no query."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_log = logging.getLogger("dovetail")
_said: set[tuple[str, type[Exception]]] = set()


def attempted(what: str, take: Callable[[], T], otherwise: T) -> T:
    """What is taken, or `otherwise` if that fails. Each kind of failure is said once: batches come every second."""
    try:
        return take()
    except Exception as error:  # noqa: BLE001 - no answer depends on it, whatever this is
        kind = what, type(error)
        if kind not in _said:
            _said.add(kind)
            _log.warning("statistics of %s cannot be had, and are left out; said once: %r", what, error, exc_info=error)
        return otherwise
