"""What happens when: Q1 is there from the start, Q2 and Q3 join it, Q1 leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dovetail.demo.queries import Q1, Q2, Q3, DemoQuery


@dataclass(frozen=True)
class Act:
    """A change to make once this share of the demo's time has passed."""

    at_share: float
    kind: Literal["create", "drop"]
    query: DemoQuery


ACTS = (
    Act(0.20, "create", Q2),
    Act(0.40, "create", Q3),
    Act(0.75, "drop", Q1),
)
