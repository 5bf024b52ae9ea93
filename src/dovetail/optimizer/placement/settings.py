"""Which shortcuts a solver may take, and when it has to end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from dovetail.core.errors import QueryError

Heuristic = Literal[
    "streams apart", "gap", "time budget", "merged groups", "merged partitions", "pair tree", "hybrid groups"
]
HEURISTICS: tuple[Heuristic, ...] = get_args(Heuristic)
"""In the order in which SASPAR's Algorithm 1 takes them."""


@dataclass(frozen=True)
class Settings:
    """`gap`: a placement that is proven to cost at most so much more than any other is good enough; with the heuristic
    `gap` it doubles from round to round, without it only what is optimal is. Without `time budget` and `exact_nodes`
    nothing stops the exact program. `work` and `exact_nodes` bound what is done by counts: nodes and tuples that passes
    of moves look at, and nodes of the exact program's tree, where zero leaves it out. `seed` turns the random choices
    of later rounds.
    """

    heuristics: frozenset[Heuristic] = frozenset(HEURISTICS)
    time_budget_s: float = 4.0
    gap: float = 0.01
    rounds: int = 3
    work: float = math.inf
    exact_nodes: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = sorted(set(self.heuristics) - set(HEURISTICS))
        if unknown:
            raise QueryError(f"there is no heuristic {unknown[0]!r}", hint=f"any of: {', '.join(HEURISTICS)}")
        if not self.time_budget_s >= 0:
            raise QueryError(f"a time budget of {self.time_budget_s} s", hint="give seconds, zero or more")
        if not (math.isfinite(self.gap) and self.gap >= 0):
            raise QueryError(f"a gap of {self.gap}", hint="give a share of the cost, 0.01 for 1%")
        if not self.work > 0:
            raise QueryError(f"{self.work} steps of work", hint="give 1 or more")
        if self.rounds < 1:
            raise QueryError(f"{self.rounds} rounds", hint="give 1 or more")
