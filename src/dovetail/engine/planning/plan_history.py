"""Why plans changed and what it gained: expected by the cost model, observed on the batches before and after."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

MAX_CHANGES = 100
BATCHES_COMPARED = 5


@dataclass(frozen=True)
class PlanChange:
    """From `batch` on the plan of `epoch` ran. Costs are seconds of work a batch under the statistics of the change,
    with the price of what intermediates keep.

    Observed times are medians over a few batches, None until there are some; batches differ in their rows, so they
    stand beside the rows they had.
    """

    batch: int
    epoch: int
    reasons: tuple[str, ...]
    expected_before_s: float | None = None
    expected_after_s: float | None = None
    observed_before_ms: float | None = None
    observed_after_ms: float | None = None
    rows_before: float | None = None
    rows_after: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "batch": self.batch,
            "epoch": self.epoch,
            "reasons": list(self.reasons),
            "expectedSeconds": {"before": self.expected_before_s, "after": self.expected_after_s},
            "observedMs": {"before": self.observed_before_ms, "after": self.observed_after_ms},
            "inputRows": {"before": self.rows_before, "after": self.rows_after},
        }


@dataclass(frozen=True)
class _BatchRun:
    run_ms: float
    rows: int


class PlanHistory:
    """Of this process: after a restart it begins anew."""

    def __init__(self) -> None:
        self._changes: deque[PlanChange] = deque(maxlen=MAX_CHANGES)
        self._before: list[_BatchRun] = []
        self._current: list[_BatchRun] = []

    @property
    def changes(self) -> tuple[PlanChange, ...]:
        """The oldest first, the last one with what was observed since."""
        if not self._changes:
            return ()
        last = replace(
            self._changes[-1],
            observed_before_ms=_median([run.run_ms for run in self._before]),
            observed_after_ms=_median([run.run_ms for run in self._current]),
            rows_before=_median([float(run.rows) for run in self._before]),
            rows_after=_median([float(run.rows) for run in self._current]),
        )
        return (*list(self._changes)[:-1], last)

    def note_change(self, change: PlanChange) -> None:
        if self._changes:
            self._changes[-1] = self.changes[-1]
        self._changes.append(change)
        self._before, self._current = self._current[-BATCHES_COMPARED:], []

    def note_batch(self, run_ms: float, rows: int) -> None:
        """A batch under the newest plan."""
        if rows:
            self._current.append(_BatchRun(run_ms, rows))
            del self._current[: -2 * BATCHES_COMPARED]


def _median(values: list[float]) -> float | None:
    return median(values) if values else None
