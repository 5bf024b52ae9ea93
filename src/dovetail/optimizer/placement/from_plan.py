"""The placement problem of a running plan, from what was sampled and counted of its data (S2, S3, D1).

stores                 rows a batch by key group of every use, as sampled; what shipping one costs, by its bytes
work of an index       rows that probe it and pairs they find, by key group; it weighs on partitions, nobody ships it
seconds                unit costs, measured on the machine

A row that is sent costs its sender and the partition that receives it, about half each; the latter is part of what
makes a partition slow. Where references travel and not rows, nothing is shipped and only balance is left to win.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dovetail.optimizer.placement.problem import PlacementCosts
from dovetail.optimizer.placement.sampled_problem import SampledProblem, SampledStream
from dovetail.optimizer.pricing.estimate_work import work_by_index
from dovetail.plan.key_classes import key_classes
from dovetail.plan.placement import UseName, use_of
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.shipping import Copies, placed_indexes
from dovetail.plan.store_plan import StorePlan
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.key_group_sample import Cells, KeyGroupSample
from dovetail.stats.unit_costs import UnitCosts


@dataclass(frozen=True)
class PlanProblems:
    """Placement problems of one plan under the statistics of one batch, from this or that sample of its rows."""

    plan: SharedPlan
    stats: StatsCatalog
    units: UnitCosts

    def of_samples(self, samples: Mapping[str, KeyGroupSample]) -> SampledProblem | None:
        """`samples` by store."""
        return self.of_cells(self.cells(samples))

    def cells(self, samples: Mapping[str, KeyGroupSample]) -> dict[str, Cells]:
        """By store that has keys, its rows by key group of all its uses; a store without sampled rows is left out."""
        cells = {}
        for store in self.plan.stores:
            uses = uses_of_store(store)
            found = samples.get(store.id, KeyGroupSample()).cells(uses) if uses else None
            if found is not None:
                cells[store.id] = found
        return cells

    def of_cells(self, cells_by_store: Mapping[str, Cells]) -> SampledProblem | None:
        """None if nothing is to be placed."""
        if not self.classes or not cells_by_store:
            return None
        shipped = sorted(cells_by_store.keys() & self.shared_stores)
        bytes_by_store = {store: self.stats.row_bytes(store).value for store in shipped}
        usual_bytes = sum(bytes_by_store.values()) / len(shipped) if shipped else 0.0
        streams = [
            SampledStream(
                store,
                tuple(self._class_of_use[store, use] for use in cells.uses),
                cells,
                bytes_by_store[store] / usual_bytes if store in bytes_by_store else 0.0,
            )
            for store, cells in cells_by_store.items()
        ]
        half_s = self.units.sent * usual_bytes / 2
        work_s = self.units.probed + self.units.searched
        placement = self.plan.placement
        costs = PlacementCosts(half_s, half_s + self.units.indexed + work_s, senders=placement.partition_count)
        weight = work_s / costs.process_s if costs.process_s else 0.0
        streams += [replace(each, cells=each.cells.times(weight)) for each in self._work]
        rows = sum(float(cells.rows.sum()) + cells.unplaced for cells in cells_by_store.values())
        return SampledProblem(
            placement.group_count, placement.partition_count, self.classes, tuple(streams), costs, rows
        )

    @cached_property
    def shared_stores(self) -> set[str]:
        """Whose rows travel once for all keys that send them to a partition. Rows of kept joins stay where they met."""
        plan = self.plan
        if plan.shipping is None or plan.shipping.copies is not Copies.PARTITION:
            return set()
        met = {emit.into for tree in plan.probing_trees for node in tree.walk() for emit in node.emits}
        return {store.id for store in plan.stores if plan.ships(store) and store.id not in met}

    @cached_property
    def classes(self) -> tuple[frozenset[UseName], ...]:
        return key_classes(self.plan)

    @cached_property
    def _class_of_use(self) -> dict[UseName, int]:
        return {use: number for number, uses in enumerate(self.classes) for use in uses}

    @cached_property
    def _work(self) -> list[SampledStream]:
        """Rows that probe and pairs that they find, by index. Where routing deals them out, they lie nowhere in
        particular.
        """
        plan, found = self.plan, []
        group_count = plan.placement.group_count
        indexes = {(store.id, index.id): index for store in plan.stores for index in store.indexes}
        for (store, name), work in work_by_index(plan, self.stats, min_rows=1.0).items():
            routing = plan.routing(store, indexes[store, name])
            if routing.subgroups is None:
                use = use_of(store, indexes[store, name])
                rows = work.by_key_group(routing, group_count)
                groups = np.arange(group_count, dtype=np.int16)[None, rows > 0]
                cells = Cells((use[1],), groups, rows[rows > 0], 0.0)
                found.append(SampledStream(f"work at {store}{name}", (self._class_of_use[use],), cells, 0.0))
        return found


def uses_of_store(store: StorePlan) -> tuple[str, ...]:
    """The keys that rows of a store are placed by, as the ids of plain indexes."""
    return tuple(dict.fromkeys(use_of(store.id, index)[1] for index in placed_indexes(store)))
