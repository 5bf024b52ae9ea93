"""What a cost model must answer; the solvers know no formula."""

from __future__ import annotations

from typing import Protocol

from dovetail.optimizer.joint.plan import Step
from dovetail.optimizer.joint.problem import SubJoin


class CostModel(Protocol):
    """All answers are finite and not negative, and the same for the same question as long as one problem is solved."""

    def step_cost(self, step: Step) -> float:
        """What one probe step costs; paid once, however many queries take it."""

    def upkeep_cost(self, intermediate: SubJoin) -> float:
        """What keeping an intermediate costs beyond the steps that maintain it (writing its rows, say)."""

    def stored(self, store: SubJoin) -> float:
        """What a store takes from the storage budget."""
