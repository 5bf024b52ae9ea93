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
class WorkExplained:
    """What tasks took for a batch, as it was measured lately, and what they would take if each query ran alone.

    `rows_read` were read once; alone, each query would read all rows of its streams: `rows_read_alone`. Reading is
    taken to cost as much a row then; joining to compare with joining alone as in the cost model. What Spark needs
    besides, for one streaming query or for many, is left out.
    """

    rows_read: int
    rows_read_alone: int
    reading_ms: float
    reading_alone_ms: float
    joining_ms: float
    joining_alone_ms: float
    total_ms: float
    alone_ms: float
    saving_share: float


@dataclass(frozen=True)
class CostExplained:
    """Milliseconds of joining a batch by the cost model, building answers left out.

    `measured` of None: no batch ran by this plan in this process, or the model knows nothing yet.
    """

    total_ms: float
    alone_ms: float | None
    saving_ms: float | None
    saving_share: float | None
    basis: Origin
    measured: WorkExplained | None
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
