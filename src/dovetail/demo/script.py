"""What happens when: Q1 is there from the start, Q2 and Q3 join it, Q1 leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dovetail.demo.queries import Q1, Q2, Q3, DemoQuery


@dataclass(frozen=True)
class Act:
    """A change to make once this share of the demo's time has passed, and `after` has answers.

    On a busy machine one batch may take as long as the whole script.
    """

    at_share: float
    kind: Literal["create", "drop"]
    query: DemoQuery
    after: DemoQuery


ACTS = (
    Act(0.20, "create", Q2, after=Q1),
    Act(0.40, "create", Q3, after=Q2),
    Act(0.75, "drop", Q1, after=Q3),
)
