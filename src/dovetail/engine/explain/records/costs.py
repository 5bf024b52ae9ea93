"""Records of what a plan costs whom, what sharing saves, and what its last change brought."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.stats.estimate import Origin


@dataclass(frozen=True)
class QueryCostExplained:
    """Milliseconds of work a batch. `share_of_plan` is of the whole plan's cost, `share_of_alone` of its own alone."""

    query: str
    alone_ms: float | None
    share_ms: float
    share_of_plan: float | None
    share_of_alone: float | None
    basis: Origin


@dataclass(frozen=True)
class CostExplained:
    """Milliseconds of work a batch by the cost model, building answers left out."""

    total_ms: float
    alone_ms: float | None
    saving_ms: float | None
    saving_share: float | None
    basis: Origin
    queries: tuple[QueryCostExplained, ...]


@dataclass(frozen=True)
class ChangeExplained:
    """Expected costs are milliseconds of work a batch; observed ones medians of how long batches ran."""

    batch: int
    epoch: int
    reasons: tuple[str, ...]
    expected_before_ms: float | None
    expected_after_ms: float | None
    observed_before_ms: float | None
    observed_after_ms: float | None
    input_rows_before: float | None
    input_rows_after: float | None
