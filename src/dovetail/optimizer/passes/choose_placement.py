"""Which partitions there are, and which works on which key groups of which use (S1, S4, D3): may differ every batch."""

from __future__ import annotations

from collections.abc import Callable, Collection

from dovetail.plan.placement import Placement, Placements, UseName, even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog

PlacementPolicy = Callable[[SharedPlan, StatsCatalog, Placements | None], Placements]
"""The placements of all uses of a plan, from what is known and the placements that run, if any do.

The number of partitions may change with them, the number of key groups may not. No answer depends on it. It is asked
with every batch, and when a plan is shown: it should return what runs unless there is reason to change. Load alone
decides how many partitions there are, so a policy takes that number from the placements that run.
"""


def even_placements(group_count: int, partition_count: int) -> PlacementPolicy:
    """All uses alike, the key groups spread evenly; `partition_count` is that of the first plan."""

    def choose(_plan: SharedPlan, _stats: StatsCatalog, running: Placements | None) -> Placements:
        count = partition_count if running is None else running.usual.partition_count
        return Placements(even_placement(group_count, count))

    return choose


def placement_changes(before: Placements, now: Placements, uses: Collection[UseName], because: str = "") -> list[str]:
    """One sentence for what changed of the usual placement, and one for each of the `uses` that went another way.

    `because` is why there is another number of partitions, where something says so.
    """
    if now.usual.partition_count != before.usual.partition_count:
        named = "1 partition" if now.usual.partition_count == 1 else f"{now.usual.partition_count} partitions"
        return [f"{because}: " * bool(because) + f"{named} instead of {before.usual.partition_count}"]
    changes = [f"{_moved(before.usual, now.usual)} are placed anew"] if before.usual != now.usual else []
    special = (before.special_uses | now.special_uses).intersection(uses)
    for store, index in sorted(special):
        was, is_now = before.of_use((store, index)), now.of_use((store, index))
        if was != is_now:
            changes.append(f"{_moved(was, is_now)} of {store}{index} are placed anew")
    return changes


def _moved(before: Placement, now: Placement) -> str:
    owners = zip(before.partition_by_group, now.partition_by_group, strict=True)
    return f"{sum(was != is_now for was, is_now in owners)} of {now.group_count} key groups"
