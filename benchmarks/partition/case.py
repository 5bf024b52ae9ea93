"""Queries over streams, run with and without sharing what is shipped: what suite `partition` measures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.data.folder_case import NO_LIMITS, Right
from benchmarks.replay import Replay, StreamFolder, replay
from benchmarks.suites.skew import slowest_over_mean
from benchmarks.workbench import Workbench

UNSHARED = "unshared"
MODES: Mapping[str, Mapping[str, Any]] = {
    UNSHARED: {"exchange": "rows", "copies": "key"},
    "by_key": {"exchange": "rows", "copies": "key"},
    "shared": {"exchange": "rows", "copies": "partition", "placement": "shared"},
    "references": {"exchange": "references"},
}
"""Every query ships for itself, in a session of its own; a tuple goes once for each key that any query partitions by
(AJoin); once to each partition that any of them sends it to, key groups placed so that these are few (SASPAR); not at
all (the default)."""

MOST_SESSIONS = 20
"""Where every query has a session of its own, so many of them run, one after the other, and stand for all."""

LEARNING_SHARE = 0.5
"""Of the batches: in these a session learns of its streams and places key groups. They count for no mode."""


@dataclass(frozen=True)
class PartitionCase:
    """`right` has the answers that are checked: all of them, or those of some queries where there are very many."""

    name: str
    streams: tuple[StreamFolder, ...]
    rows: int
    sql_by_name: Mapping[str, str]
    right: Mapping[str, Right]

    @property
    def answers_groups(self) -> bool:
        return any(right.rows is not None for right in self.right.values())

    def alone(self, name: str) -> PartitionCase:
        """One of the queries, over the streams that its text names."""
        sql = self.sql_by_name[name]
        streams = tuple(stream for stream in self.streams if re.search(rf"\b{stream.name}\b", sql))
        return PartitionCase(f"{self.name}, {name}", streams, self.rows, {name: sql}, {name: self.right[name]})

    @property
    def sample(self) -> tuple[str, ...]:
        """Queries that stand for all, spread evenly over those whose answers are checked."""
        checked = tuple(self.right)
        return checked[:: -(-len(checked) // MOST_SESSIONS)]


@dataclass(frozen=True)
class ModeRun:
    """What a run in one mode said of its batches from the learning ones on.

    `shipped_bytes` are those of tuples on their way to where they are kept, `exchanged_bytes` of everything that tasks
    sent one another; both as Spark's shuffles count them, where tuples are shipped.
    """

    seconds: float
    shipped_bytes: int
    shipped_rows: int
    exchanged_bytes: int
    imbalance: float
    placed_in_batch: int | None
    is_equal: bool

    @staticmethod
    def of(done: Replay, *, is_equal: bool) -> ModeRun:
        first = int(len(done.progress) * LEARNING_SHARE)
        learned = done.progress[first:]
        shipped = [batch["shipped"] for batch in learned]
        work = [[unit["probedRows"] + unit["pairs"] for unit in batch["work"]["partitions"]] for batch in learned]
        return ModeRun(
            seconds=sum(done.batch_ms[first:]) / 1000,
            shipped_bytes=sum(each["bytes"] for each in shipped),
            shipped_rows=sum(each["rows"] for each in shipped),
            exchanged_bytes=sum(each["exchangedBytes"] or 0 for each in shipped),
            imbalance=slowest_over_mean(work),
            placed_in_batch=done.progress[-1].get("placement", {}).get("placedInBatch"),
            is_equal=is_equal,
        )


def compare(bench: Workbench, case: PartitionCase, partitions: int, repeats: int) -> dict[str, Any]:
    """All modes by turns, so that what disturbs the machine disturbs all of them; of each the fastest run counts."""
    runs_by_mode: dict[str, list[ModeRun]] = {mode: [] for mode in MODES}
    for _ in range(repeats):
        for mode, options in MODES.items():
            with bench.steps.step(f"{case.name}: {mode}"):
                run = run_unshared if mode == UNSHARED else run_mode
                runs_by_mode[mode].append(run(bench, case, {**options, "partitions": partitions}))
            newest = runs_by_mode[mode][-1]
            bench.steps.note(f"  {newest.seconds:.2f} s, {newest.shipped_bytes / 1e6:.1f} MB of tuples shipped")
    best = {mode: min(runs, key=lambda run: run.seconds) for mode, runs in runs_by_mode.items()}
    return {
        "rows": case.rows,
        "queries": len(case.sql_by_name),
        "partitions": partitions,
        **_by_mode(best),
        "time_ratio": round(best["unshared"].seconds / best["shared"].seconds, 2),
        "time_ratio_by_key": round(best["by_key"].seconds / best["shared"].seconds, 2),
        "imbalance": round(best["shared"].imbalance, 3),
        "placed_in_batch": best["shared"].placed_in_batch,
        "queries_checked": len(case.right),
        "unshared_sessions": len(case.sample),
        "results_equal": all(run.is_equal for runs in runs_by_mode.values() for run in runs),
        "spread": {mode: sorted(round(run.seconds, 3) for run in runs) for mode, runs in runs_by_mode.items()},
    }


def _by_mode(best: Mapping[str, ModeRun]) -> dict[str, object]:
    figures: dict[str, object] = {"references_s": round(best["references"].seconds, 3)}
    for mode, run in best.items():
        if mode != "references":
            figures |= {
                f"exchanged_{mode}": run.exchanged_bytes,
                f"shipped_{mode}": run.shipped_bytes,
                f"shipped_rows_{mode}": run.shipped_rows,
                f"time_{mode}_s": round(run.seconds, 3),
            }
    unshared, shared = best["unshared"], best["shared"]
    if shared.shipped_bytes:
        figures["shipped_ratio"] = round(unshared.shipped_bytes / shared.shipped_bytes, 2)
        figures["shipped_ratio_by_key"] = round(best["by_key"].shipped_bytes / shared.shipped_bytes, 2)
    return figures


def run_unshared(bench: Workbench, case: PartitionCase, options: Mapping[str, Any]) -> ModeRun:
    """A session a query, one after the other: what a sample of them took, scaled up to all queries.

    What it takes to start a session is in no run's seconds.
    """
    runs = [run_mode(bench, case.alone(name), options) for name in case.sample]
    scale = len(case.sql_by_name) / len(runs)
    return ModeRun(
        seconds=scale * sum(run.seconds for run in runs),
        shipped_bytes=round(scale * sum(run.shipped_bytes for run in runs)),
        shipped_rows=round(scale * sum(run.shipped_rows for run in runs)),
        exchanged_bytes=round(scale * sum(run.exchanged_bytes for run in runs)),
        imbalance=max(run.imbalance for run in runs),
        placed_in_batch=None,
        is_equal=all(run.is_equal for run in runs),
    )


def run_mode(bench: Workbench, case: PartitionCase, options: Mapping[str, Any]) -> ModeRun:
    bench.collect_garbage()
    done = replay(
        bench.spark,
        case.streams,
        case.sql_by_name,
        bench.fresh_folder("dovetail"),
        # Every batch runs in stages: it is their exchanges that are measured.
        {**NO_LIMITS, "small_batch_rows": 0, **options},
        read_rows=case.answers_groups,
        read=case.right.keys(),
    )
    unequal = [
        name
        for name, right in case.right.items()
        if not right.is_given_by(done.answer_by_name.get(name), done.rows_by_name.get(name))
    ]
    for name in unequal[:5]:
        bench.steps.note(f"[red]{case.name}: {name} differs from DuckDB with {options}[/red]")
    return ModeRun.of(done, is_equal=not unequal)
