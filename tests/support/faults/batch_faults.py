"""What may go wrong around a batch, the way Spark and its machines let it go wrong."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from dovetail.testing.faults import CRASH_STEPS


@dataclass(frozen=True)
class BatchFaults:
    """What happens around one batch."""

    crash_at: str | None = None
    retry_tasks: bool = False
    is_redelivered: bool = False
    is_vacuumed: bool = False
    is_restarted: bool = False
    partitions: int | None = None
    """Restart with so many partitions before the batch."""
    changes_exchange: bool = False
    """Restart with another exchange before the batch."""

    @property
    def needs_restart(self) -> bool:
        return bool(self.crash_at or self.retry_tasks or self.is_restarted or self.partitions or self.changes_exchange)


def random_faults(rng: Random, batch_count: int) -> tuple[BatchFaults, ...]:
    return tuple(
        BatchFaults(
            crash_at=rng.choice(CRASH_STEPS) if rng.random() < 0.4 else None,
            retry_tasks=rng.random() < 0.3,
            is_redelivered=rng.random() < 0.3,
            is_vacuumed=rng.random() < 0.3,
            partitions=rng.choice([1, 2, 3]) if rng.random() < 0.3 else None,
            changes_exchange=rng.random() < 0.3,
        )
        for _ in range(batch_count)
    )
