"""Figures over time as one short text, for terminals."""

from __future__ import annotations

from collections.abc import Iterable

_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Iterable[float], width: int) -> str:
    """The latest values as bars, scaled to their maximum.

    >>> sparkline([0, 5, 10], 4)
    '▁▅█'
    """
    latest = list(values)[-width:]
    top = max(latest, default=0.0)
    if top <= 0:
        return _BARS[0] * len(latest)
    return "".join(_BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] for value in latest)
