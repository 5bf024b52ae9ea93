"""How work is dealt to partitions, in words."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.core.text_tree import TextTree
from dovetail.engine.explain.records.partitions import PartitioningExplained, PlacementExplained
from dovetail.engine.explain.text.words import UNKNOWN, counted, milliseconds, number, share


def partitioning_tree(partitioning: PartitioningExplained) -> TextTree:
    each = " or ".join(map(str, sorted(set(partitioning.key_groups_by_partition))))
    placed = [] if partitioning.placement is None else [TextTree(line) for line in _placement(partitioning.placement)]
    units = [] if partitioning.units is None else [TextTree(str(partitioning.units))]
    return TextTree(
        f"work is dealt to {counted(partitioning.partitions, 'partition')} by key: "
        f"{partitioning.key_groups} groups of keys, {each} in each",
        (*units, *placed),
    )


def _placement(placement: PlacementExplained) -> Iterator[str]:
    if placement.placed_in_batch is None:
        yield "placed evenly" if not placement.times_sought else f"placed evenly; {_sought(placement.times_sought)}"
    else:
        yield f"placed where rows meet, since batch {placement.placed_in_batch}, because {placement.because}"
    if placement.shipped_rows is not None or placement.expected_shipped_rows is not None:
        expected = number(placement.expected_shipped_rows)
        yield f"the last batch sent {number(placement.shipped_rows)} rows to partitions, {expected} expected"
    if placement.objective_ms is not None:
        imbalance = UNKNOWN if placement.imbalance is None else f"{placement.imbalance:.2f}"
        expected, least = milliseconds(placement.objective_ms), milliseconds(placement.least_ms)
        slowest = f"the slowest partition has {imbalance} times the mean"
        yield f"expected {expected} a batch, at least {least} by any placement; {slowest}"
    if placement.expected_gain is not None:
        proven = f"{placement.proven_batches} batches in a row, and is taken after {placement.needed_batches}"
        yield f"another placement would save {share(placement.expected_gain)}; it was better in {proven}"
    yield from (f"overlaps of {each}" for each in placement.overlaps)


def _sought(count: int) -> str:
    return f"a better placement was sought {'once' if count == 1 else f'{count} times'}"
