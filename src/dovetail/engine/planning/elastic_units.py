"""The units of a session that come and go with its load (B9, D3): measured with every batch, changed at its edge."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.engine.options import EngineOptions
from dovetail.engine.planning.measure_units import measured_load, rewritten_rows
from dovetail.engine.planning.scale_units import Scaling, UnitLoad, Wish, begin_scaling, next_scaling
from dovetail.optimizer.policies import PlacementPolicy
from dovetail.plan.placement import Placements, even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog
from dovetail.store.bucket_file import BucketMeta


@dataclass(frozen=True)
class UnitsNow:
    """After a batch: what it ran with, and what the next one will.

    `wish` was made `times` in a row, and counts after `patience` times. `changes` were made since the process began;
    the last of them, which this batch was the first to run with or not, made it rewrite `moved_rows` stored rows.
    """

    partitions: int
    next_partitions: int
    least: int
    most: int
    load: UnitLoad
    wish: Wish
    times: int
    patience: int
    is_hot: bool
    changes: int
    moved_rows: int
    executors: int | None

    def __str__(self) -> str:
        loads = {"memory": self.load.memory, "time": self.load.time}
        shown = ", ".join(f"{kind} {load:.2f}" for kind, load in loads.items() if load is not None)
        hot = (
            f"; the fullest has {self.load.hottest:.2f}: its keys are to be spread, not units added"
            if self.is_hot
            else ""
        )
        wish = "" if self.wish is Wish.STAY else f"; {self.wish.value} of them wished {self.times} times in a row"
        return (
            f"elastic, {self.least} to {self.most} partitions: batch ran with {self.partitions}, load {shown}"
            f"{hot}{wish}; {self.changes} changes so far"
        )

    def to_json(self) -> dict[str, Any]:
        """As an entry of a batch's progress."""
        return {
            "partitions": self.partitions,
            "nextPartitions": self.next_partitions,
            "minPartitions": self.least,
            "maxPartitions": self.most,
            "load": self.load.mean,
            "memoryLoad": self.load.memory,
            "timeLoad": self.load.time,
            "hottestLoad": self.load.hottest,
            "isHot": self.is_hot,
            "wish": self.wish.value,
            "wishedTimes": self.times,
            "changes": self.changes,
            "movedRows": self.moved_rows,
            "executors": self.executors,
        }


class ElasticUnits:
    """Not thread-safe: whoever plans or commits holds the lock of plans.

    `interval_s` is the trigger's, None where batches follow one another; `count_executors` knows how many run.
    """

    def __init__(self, options: EngineOptions, buckets: Iterable[BucketMeta] = ()) -> None:
        """What is stored already is known to need so many units: a restart does not begin with too few."""
        self._options = options
        self._settings = options.scaling
        stored = sum(meta.size_bytes for meta in buckets)
        by_memory = math.ceil(stored / options.elasticity.max_bytes_per_partition / options.tuning.target_load)
        self._scaling: Scaling = begin_scaling(self._settings, max(options.partitioning.partitions, by_memory))
        self._changes = 0
        self._because = ""
        self._running: SharedPlan | None = None
        self.interval_s: float | None = None
        self.count_executors: Callable[[], int | None] = lambda: None
        self.now: UnitsNow | None = None

    @property
    def units(self) -> int:
        """As many as the next batch runs with."""
        return self._scaling.units

    @property
    def because(self) -> str:
        """Why they are as many; empty before the first change."""
        return self._because

    def run_at_once(self, cores: int | None) -> None:
        """So many units run at the same time at most; None where executors can be had for more."""
        self._settings = replace(self._settings, cores=cores)

    def at_scale(self, choose: PlacementPolicy) -> PlacementPolicy:
        """The policy for as many units as the load asks for: it is told that so many run."""

        def chosen(plan: SharedPlan, stats: StatsCatalog, running: Placements | None) -> Placements:
            before = running or plan.placements
            if before.usual.partition_count != self.units:
                before = Placements(even_placement(before.usual.group_count, self.units))
            return choose(plan, stats, before)

        return chosen

    def note_batch(self, batch: FinishedBatch, stats: StatsCatalog, batch_s: float, *, is_one_task: bool) -> UnitsNow:
        """Measure a committed batch; the next one may run with other units."""
        load = measured_load(
            batch,
            stats,
            max_bytes=self._options.elasticity.max_bytes_per_partition,
            batch_s=batch_s,
            interval_s=self.interval_s,
            is_one_task=is_one_task,
        )
        moved = 0
        if self._running is not None and self._running.placement.partition_count != load.units:
            moved = rewritten_rows(batch, self._options.tuning.merge_fanout)
        self._running = batch.plan
        self._scaling = next_scaling(self._settings, self._scaling, load)
        if self._scaling.because:
            self._changes += 1
            self._because = self._scaling.because
        high = self._settings.high
        self.now = UnitsNow(
            load.units,
            self._scaling.units,
            self._settings.min_units,
            self._settings.max_units,
            load,
            self._scaling.wish,
            self._scaling.times,
            self._scaling.patience,
            load.hottest > high >= load.mean,
            self._changes,
            moved,
            self.count_executors(),
        )
        return self.now
