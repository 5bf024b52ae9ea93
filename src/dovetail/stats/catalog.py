"""Rates and selectivities that the planner asks for; what nobody gave is assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.query.expression import TRUE, Expression
from dovetail.stats.estimate import Estimate, Origin

ASSUMED_ROWS_IN_WINDOW = 100_000.0
ASSUMED_SELECTION = 0.5
ASSUMED_KEY_MATCH = 1e-5


@dataclass(frozen=True)
class StatsCatalog:
    """`rows_in_window` by stream; `key_match` by canonical edge text «stream.column=stream.column» (sorted)."""

    rows_in_window: Mapping[str, float] = field(default_factory=dict)
    key_match: Mapping[str, float] = field(default_factory=dict)

    def rows(self, stream: str) -> Estimate:
        given = self.rows_in_window.get(stream)
        return Estimate(ASSUMED_ROWS_IN_WINDOW, Origin.ASSUMED) if given is None else Estimate(given, Origin.GIVEN)

    def selection(self, selection: Expression) -> Estimate:
        if selection == TRUE:
            return Estimate(1.0, Origin.GIVEN)
        return Estimate(ASSUMED_SELECTION, Origin.ASSUMED)

    def match(self, edge: str) -> Estimate:
        given = self.key_match.get(edge)
        return Estimate(ASSUMED_KEY_MATCH, Origin.ASSUMED) if given is None else Estimate(given, Origin.GIVEN)


def edge_text(a_side: str, b_side: str) -> str:
    """The name of an edge in `key_match`.

    >>> edge_text("views.vid", "videos.vid")
    'videos.vid=views.vid'
    """
    return "=".join(sorted((a_side, b_side)))
