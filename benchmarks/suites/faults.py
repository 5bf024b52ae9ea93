"""Suite `faults`: what is lost, doubled or wrong after kills, damage and power losses; and what it costs to be safe.

    drivers      killed with their JVM at moments drawn from the seed, started again; answers against batch SQL
    executors    and Python workers, killed while batches run
    damage       every kind of file x flipped bit, cut off, emptied, deleted; stopped and running: an error or exact
    unsynced     the power goes at every sync: whatever was not synced is gone, or half there
    sync cost    synced and with checksums against neither, in pairs

`--repeats` runs the kills so many times over, each with other moments.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.faults.damage import ON_SPARK_ONLY
from benchmarks.faults.kill_drivers import kill_drivers
from benchmarks.faults.kill_executors import kill_executors
from benchmarks.faults.power_loss import Moment, Unsynced
from benchmarks.faults.spark_damage import SparkDamage, SparkOutcome
from benchmarks.faults.sync_cost import sync_cost
from benchmarks.faults.try_damage import (
    Outcome,
    exact_after_power_losses,
    exact_answers,
    lost_after,
    record_power_losses,
    try_running,
    try_stopped,
)
from benchmarks.faults.unchecked import FLAG
from benchmarks.measure import Steps
from benchmarks.options import BenchOptions
from benchmarks.spark_session import start_spark
from benchmarks.workbench import Workbench

DRIVER_KILLS, QUICK_DRIVER_KILLS = 60, 4
KILLS_A_CHECKPOINT = 12
EXECUTOR_KILLS, QUICK_EXECUTOR_KILLS = 24, 4
FILES_OF_A_KIND = 2
QUICK_KINDS = ON_SPARK_ONLY[:2]


def run(options: BenchOptions, steps: Steps) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as folder:
        return run_in(Path(folder), options, steps)


def run_in(folder: Path, options: BenchOptions, steps: Steps) -> dict[str, object]:
    times, seed = options.repeats_or(1), options.seed
    steps.note(f"kills and their moments are drawn from seed {seed}")
    damage = DamageCount()
    with _silence():
        unsynced = cut_power(folder / "unsynced", steps, quick=options.quick)
        damage_in_process(folder / "damage", damage, steps, quick=options.quick)
    drivers = QUICK_DRIVER_KILLS if options.quick else DRIVER_KILLS * times
    driver = kill_drivers(folder / "drivers", drivers, KILLS_A_CHECKPOINT, seed, steps)
    executors = QUICK_EXECUTOR_KILLS if options.quick else EXECUTOR_KILLS * times
    executor = kill_executors(folder / "executors", executors, seed, steps)
    flag = folder / "unchecked"
    os.environ[FLAG] = str(flag)
    spark = start_spark(options.cores, folder / "spark", spark__python__daemon__module="benchmarks.faults.unchecked")
    try:
        with _silence():
            damage_on_spark(spark, folder / "spark-damage", damage, steps, quick=options.quick)
        cost = sync_cost(Workbench(spark, folder / "cost", options, steps), flag)
    finally:
        spark.stop()
        del os.environ[FLAG]
    return {
        "seed": seed,
        "driver": driver.figures,
        "executor": executor.figures,
        "damage": damage.figures,
        "unsynced": unsynced,
        "sync_cost_ratio": max(each["ratio"] for each in cost.values()),
        "sync_cost": cost,
        "results_equal": all(each["answers_equal"] for each in cost.values()),
    }


@contextmanager
def _silence() -> Iterator[None]:
    """What hundreds of damaged sessions have to say is said by their errors."""
    log = logging.getLogger("dovetail")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


class DamageCount:
    def __init__(self) -> None:
        self.by_kind: Counter[str] = Counter()
        self.silent: list[str] = []
        self.told = 0

    def add(self, what: str, kind: str, error: str | None, *, is_silent: bool) -> None:
        self.by_kind[kind] += 1
        self.told += error is not None
        if is_silent:
            self.silent.append(what)

    @property
    def figures(self) -> dict[str, Any]:
        tried = self.by_kind.total()
        exact = tried - self.told - len(self.silent)
        return {
            "tried": tried,
            "silent": len(self.silent),
            "told": self.told,
            "exact": exact,
            "by_kind": dict(sorted(self.by_kind.items())),
            "silent_ones": self.silent,
        }


def damage_in_process(folder: Path, count: DamageCount, steps: Steps, *, quick: bool) -> None:
    each = 1 if quick else FILES_OF_A_KIND
    expected = exact_answers(folder / "exact")
    with steps.step("files damaged while a session is stopped"):
        _count_local(try_stopped(folder / "stopped", expected, each), "stopped", count, steps)
    if not quick:
        with steps.step("files damaged while a session runs"):
            _count_local(try_running(folder / "running", expected, each), "running", count, steps)


def _count_local(outcomes: Iterator[Outcome], when: str, count: DamageCount, steps: Steps) -> None:
    for outcome in outcomes:
        damage = outcome.damage
        what = f"{damage.kind} {damage.path}: {damage.how.value}, {when}"
        count.add(what, damage.kind, outcome.error, is_silent=outcome.is_silent)
        if outcome.is_silent:
            steps.note(f"[red]silent: {what}[/red]")


def damage_on_spark(spark: Any, folder: Path, count: DamageCount, steps: Steps, *, quick: bool) -> None:
    kinds = QUICK_KINDS if quick else ON_SPARK_ONLY
    with SparkDamage(spark, folder) as runs:
        for is_running in (False,) if quick else (False, True):
            when = "running" if is_running else "stopped"
            with steps.step(f"Spark's files and marks of sinks damaged, {when}"):
                _count_on_spark(runs.tries_of_kinds(kinds, is_running=is_running), when, count, steps)


def _count_on_spark(outcomes: Iterable[SparkOutcome], when: str, count: DamageCount, steps: Steps) -> None:
    for outcome in outcomes:
        what = f"{outcome.what}, {when}"
        count.add(what, outcome.what.partition(":")[0], outcome.error, is_silent=outcome.is_silent)
        if outcome.is_silent:
            steps.note(f"[red]silent: {what}[/red]")


def cut_power(folder: Path, steps: Steps, *, quick: bool) -> dict[str, Any]:
    """At every sync of a session, with every kind of image that may be left."""
    expected = exact_after_power_losses(folder / "exact")
    moments = record_power_losses(folder / "recorded" / "checkpoint")
    images = [Unsynced.GONE] if quick else list(Unsynced)
    unopened, lost, tried = 0, 0, 0
    with steps.step(f"power lost at {len(moments)} moments, {len(images)} images of each"):
        for image in images:
            for moment in moments:
                tried += 1
                found = _lost(moment, folder / image.name / str(moment.number), image, expected)
                unopened += found is None
                lost += bool(found)
                if found or found is None:
                    steps.note(f"[red]{image.value}, moment {moment.number}: {found or 'does not open'}[/red]")
    return {"tried": tried, "unopened": unopened, "acknowledged_lost": lost, "moments": len(moments)}


def _lost(moment: Moment, folder: Path, image: Unsynced, expected: list[Any]) -> list[str] | None:
    """None if the checkpoint does not open or go on."""
    try:
        return lost_after(moment, folder, image, expected)
    except Exception:  # noqa: BLE001 - whatever it is, the user stands before a checkpoint that is gone
        return None
