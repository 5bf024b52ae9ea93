"""A line of the tables that suites' figures become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class FigureRow:
    """One line of a table: what was measured, and its value as text."""

    measured: str
    value: str


def times_text(ratio: object, *, is_lower_bound: bool = False) -> str:
    return f"{'at least ' if is_lower_bound else ''}{ratio}x"
