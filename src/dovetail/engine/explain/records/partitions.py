"""Records of how work is dealt to partitions."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.engine.planning.elastic_units import UnitsNow


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
