"""What EXPLAIN says, as plain records: text and JSON are both made from these and from nothing else.

The names of the fields are the keys of the JSON form. None stands for what is not known, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from dovetail.engine.planning.elastic_units import UnitsNow
from dovetail.stats.estimate import Estimate, Origin


@dataclass(frozen=True)
class RowFigures:
    """`live` are rows of the stream, wanted or not, that are as young as what the store keeps."""

    a_batch: Estimate | None
    a_second: Estimate | None
    late_share: Estimate | None
    live: Estimate | None
    stored: Estimate | None


@dataclass(frozen=True)
class RoutingExplained:
    """How the index is spread over partitions, and why; `subgroups` of None: by hash. Then how many keys are split."""

    routing: str
    because: str
    subgroups: int | None
    split_stored: int
    split_probing: int


@dataclass(frozen=True)
class IndexExplained:
    index: str
    distinct_keys: Estimate | None
    frequent_keys: int | None
    largest_key_share: float | None
    routing: RoutingExplained


@dataclass(frozen=True)
class SelectionExplained:
    selection: str
    passes: Estimate


@dataclass(frozen=True)
class KeptUntil:
    """Until the stream's watermark is `after_s` seconds past the row's time."""

    stream: str
    after_s: float


@dataclass(frozen=True)
class StoreExplained:
    """`retention` of None: for ever. `queries` probe with its new rows, or keep it."""

    store: str
    is_intermediate: bool
    columns: tuple[str, ...]
    keeps_all_rows: bool
    retention: tuple[KeptUntil, ...] | None
    rows: RowFigures
    stored_bytes: int
    indexes: tuple[IndexExplained, ...]
    selections: tuple[SelectionExplained, ...]
    queries: tuple[str, ...]


@dataclass(frozen=True)
class IntermediateUser:
    """New rows of `start` probe the intermediate for the query; while they cannot, `waits_because` says why."""

    query: str
    start: str
    probes_now: bool
    waits_because: str | None


@dataclass(frozen=True)
class IntermediateExplained:
    """`upkeep_ms` is what writing its rows costs a batch, the steps that find them left out."""

    store: str
    members: tuple[str, ...]
    joins_rows_from_batch: int
    users: tuple[IntermediateUser, ...]
    expected_rows: float
    expected_bytes: float
    upkeep_ms: float
    observed_rows: Estimate | None
    observed_bytes: int


@dataclass(frozen=True)
class PlacementExplained:
    """A placement that follows the data: what the last batch showed of it, and when and why it was taken.

    The objective and the least that any placement costs are by the cost model; `expected_shipped_rows` are by the
    model, too, `shipped_rows` were counted. Of another one that waits to be taken: in how many batches in a row it
    was better, of as many as it needs, and by what share. `overlaps`: where predicting them was tried, how it went.
    """

    objective_ms: float | None
    least_ms: float | None
    expected_shipped_rows: float | None
    shipped_rows: int | None
    imbalance: float | None
    placed_in_batch: int | None
    because: str | None
    times_sought: int
    times_taken: int
    proven_batches: int | None
    needed_batches: int
    expected_gain: float | None
    overlaps: tuple[str, ...]


@dataclass(frozen=True)
class PartitioningExplained:
    """`placement` of None: key groups are spread evenly, once for all. `units` are what the last batch measured, where
    the number of partitions follows the load.
    """

    key_groups: int
    partitions: int
    key_groups_by_partition: tuple[int, ...]
    placement: PlacementExplained | None = None
    units: UnitsNow | None = None


@dataclass(frozen=True)
class ExpectedRows:
    """A batch's, by the cost model; `basis` is the origin of the least known figure behind it."""

    probing_rows: float
    found_rows: float
    rows_per_probing_row: float | None
    basis: Origin


@dataclass(frozen=True)
class AnswerExplained:
    """Results that are complete here: of a query, or rows of the intermediate `into`.

    Joined rows that are only aggregated are not built where one side can be `folded`; else `why_built` says why.
    """

    query: str | None
    into: str | None
    selection: str | None
    folded: str | None
    why_built: str | None


@dataclass(frozen=True)
class StepExplained:
    """`member` is the one that the step adds; `maintains` are the intermediates whose upkeep takes the step."""

    step: str
    member: int
    store: str
    index: str
    probe_keys: tuple[str, ...]
    visibility: str
    queries: tuple[str, ...]
    maintains: tuple[str, ...]
    expected: ExpectedRows
    observed_rows_per_probing_row: Estimate | None
    match: Estimate | None
    cost_ms: float
    answers: tuple[AnswerExplained, ...]
    steps: tuple[StepExplained, ...]


@dataclass(frozen=True)
class ProbeExplained:
    """`rows` of the store `start` take the steps: new ones, or others that are asked for their partners."""

    start: str
    queries: tuple[str, ...]
    maintains: tuple[str, ...]
    steps: tuple[StepExplained, ...]
    rows: str = "new"


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


@dataclass(frozen=True)
class GroupsExplained:
    """Partial groups that are kept for `queries`, by `keys`; `pane_s` are the seconds of a pane, None without windows.

    Groups without a window are kept for ever. `details` are tables of distinct values and of sketches.
    """

    store: str
    keys: tuple[str, ...]
    partial_columns: tuple[str, ...]
    details: tuple[str, ...]
    pane_s: float | None
    is_bounded: bool
    stored_rows: int
    stored_bytes: int
    queries: tuple[str, ...]


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
class SharedStore:
    store: StoreExplained
    shared_with: tuple[str, ...]


@dataclass(frozen=True)
class SharedStep:
    """`share_ms` is what the query pays of the step's cost."""

    step: StepExplained
    shared_with: tuple[str, ...]
    share_ms: float


@dataclass(frozen=True)
class PathExplained:
    """How rows of the relation `start` of the query, new ones mostly, find their partners.

    `folded` and `why_built` speak of what is emitted, as in `AnswerExplained`.
    """

    start: str
    store: str
    steps: tuple[SharedStep, ...]
    rows: str = "new"
    folded: str | None = None
    why_built: str | None = None


@dataclass(frozen=True)
class QueryExplained:
    """A query that does not run has no stores, paths and cost. `growing_groups` are kept for ever."""

    query: str
    sql: str
    state: str
    error: str | None
    created_batch: int | None
    complete_from: int | None
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
