"""Sessions that run are stopped before the Spark they run on is.

A streaming query whose context goes prints pages of errors: its batch, its tasks, its sources, each in its own words.
Users end a program with `spark.stop()` as often as with `session.stop()`, so the one calls the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import cast

from pyspark import SparkContext

_log = logging.getLogger("dovetail")
_KEY = "_dovetail_stops"


def stop_before(context: SparkContext, stop: Callable[[], None]) -> Callable[[], None]:
    """Have `stop` called when the context is about to be stopped; the answer takes it back."""
    if _KEY not in vars(context):
        vars(context)[_KEY] = list[Callable[[], None]]()
        of_spark = context.stop

        def stop_all() -> None:
            for each in tuple(_stops(context)):
                _log.warning("spark.stop() comes before session.stop(): the session is stopped first")
                try:
                    each()
                except Exception as error:  # noqa: BLE001 - Spark shall end whatever became of the session
                    _log.warning("the session did not stop: %s", error)
            of_spark()

        # PySpark has no hook for it; `spark.stop()` comes here, too.
        context.stop = stop_all  # type: ignore[method-assign]
    _stops(context).append(stop)

    def take_back() -> None:
        if stop in _stops(context):
            _stops(context).remove(stop)

    return take_back


def _stops(context: SparkContext) -> list[Callable[[], None]]:
    return cast("list[Callable[[], None]]", vars(context)[_KEY])
