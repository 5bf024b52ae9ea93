"""What planning remembers from batch to batch: a value, so that whatever is only looked at leaves it as it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dovetail.engine.planning.joint_planner import JointMemory
from dovetail.optimizer.pipeline import Drawn
from dovetail.optimizer.planned import Planned


@dataclass(frozen=True)
class Memory:
    """`running` is what the last batch of this process ran by, `drawn` the last draft, which the next one begins with.

    `moved` is what moved since the epoch began, and may be why another does.
    """

    running: Planned | None = None
    drawn: Drawn | None = None
    moved: tuple[str, ...] = ()
    joint: JointMemory = field(default_factory=JointMemory)

    def after_batch(self, planned: Planned) -> Memory:
        """A batch ran by this plan, and its results are real."""
        if self.running is None or self.running.plan.epoch == planned.plan.epoch:
            return replace(self, running=planned)
        return replace(self, running=planned, moved=(), joint=replace(self.joint, gain=(None, None)))
