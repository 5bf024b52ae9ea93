"""Wall time as a value that tests can set."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since the epoch; `time.time` in production, a counter in tests."""

system_clock: Clock = time.time
