"""Which partitions there are, and which works on which key groups of which use (S1, S4, D3): may differ every batch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from dovetail.optimizer.draft import Draft, count_of, revised
from dovetail.optimizer.policies import PlacementPolicy
from dovetail.plan.key_classes import uses_of
from dovetail.plan.placement import Placement, Placements, UseName, even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog


def revise(draft: Draft) -> Draft:
    """The plan with the placements that the policy chooses; the same record if it has them already."""
    choose, running, plan = draft.policies.placement, draft.running, draft.factorized
    before = None if running is None else running.plan.placements
    placements = plan.placements if choose is None else choose(plan, draft.now, before)
    key_groups = plan.placement.group_count
    if placements.usual.group_count != key_groups:
        raise ValueError(f"{placements.usual.group_count} key groups are placed of {key_groups}")
    if placements.special:
        placements = placements.only(uses_of(plan))
    placed = revised(draft.placed, plan, placements=placements)
    return draft if placed is draft.placed else replace(draft, placed=placed)


def tell(draft: Draft) -> str:
    usual, special = draft.placed.placements.usual, draft.placed.placements.special
    placed = f"{count_of(usual.group_count, 'key group')} on {count_of(usual.partition_count, 'partition')}"
    return f"{placed}, {count_of(len(special), 'use')} placed apart" if special else placed


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
