"""The two records that EXPLAIN answers with: of the plan that all queries share, and of one query."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from dovetail.engine.explain.records.costs import ChangeExplained, CostExplained, QueryCostExplained
from dovetail.engine.explain.records.partitions import PartitioningExplained
from dovetail.engine.explain.records.steps import PathExplained, ProbeExplained
from dovetail.engine.explain.records.stores import (
    GroupsExplained,
    IntermediateExplained,
    SharedStore,
    StoreExplained,
)


@dataclass(frozen=True)
class PlanExplained:
    """The plan as the next batch uses it. `next_change`: why it differs from the one that the last batch ran by."""

    epoch: int
    batch: int
    queries: tuple[str, ...]
    hops: int
    stores: tuple[StoreExplained, ...]
    intermediates: tuple[IntermediateExplained, ...]
    groups: tuple[GroupsExplained, ...]
    partitioning: PartitioningExplained
    probes: tuple[ProbeExplained, ...]
    cost: CostExplained
    last_change: ChangeExplained | None
    next_change: tuple[str, ...]


@dataclass(frozen=True)
class LimitsExplained:
    """What stops the query alone if it finds more in a batch; None: nothing does."""

    max_results_per_batch: int | None
    max_pairs_per_batch: int | None


@dataclass(frozen=True)
class QueryExplained:
    """A query that does not run has no stores, paths and cost. `growing_groups` are kept for ever."""

    query: str
    sql: str
    state: str
    error: str | None
    created_batch: int | None
    complete_from: int | None
    complete_from_text: str | None
    limits: LimitsExplained
    growing_groups: tuple[str, ...]
    stores: tuple[SharedStore, ...]
    paths: tuple[PathExplained, ...]
    intermediates: tuple[IntermediateExplained, ...]
    groups: GroupsExplained | None
    cost: QueryCostExplained | None


def as_json(value: Any) -> Any:
    """A record as what `json.dumps` takes."""
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [as_json(each) for each in value]
    return value.value if isinstance(value, Enum) else value
