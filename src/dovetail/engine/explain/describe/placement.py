"""What is known of the placement that runs, where it follows the data: for EXPLAIN and for the progress of a batch."""

from __future__ import annotations

from dovetail.engine.explain.records.partitions import PlacementExplained
from dovetail.engine.planning.key_group_placer import KeyGroupPlacer


def describe_placement(placer: KeyGroupPlacer, shipped_rows: int | None) -> PlacementExplained:
    """`shipped_rows` are those that the last batch shipped; None if none ran in this process."""
    now, proving = placer.now, placer.proving
    return PlacementExplained(
        objective_ms=None if now is None else now.cost.seconds * 1e3,
        least_ms=None if now is None else now.least_s * 1e3,
        expected_shipped_rows=None if now is None else now.expected_rows,
        shipped_rows=shipped_rows,
        imbalance=None if now is None else now.cost.imbalance,
        placed_in_batch=placer.placed_in_batch,
        because=placer.because or None,
        times_sought=placer.sought,
        times_taken=placer.taken,
        proven_batches=None if proving is None else proving[0],
        needed_batches=placer.rules.in_a_row,
        expected_gain=None if proving is None else proving[1],
        overlaps=placer.overlaps,
    )
