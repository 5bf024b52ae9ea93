"""One point of `steady` from its first batch to its checked answers, as figures."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks.measure import median, percentile
from benchmarks.peers.duckdb_peer import DuckDbPeer
from benchmarks.steady.check import CHECKED_QUERIES, chosen_queries, wrong_answers
from benchmarks.steady.feed import Feed
from benchmarks.steady.floor import floor_s
from benchmarks.steady.mixed_queries import SteadyQuery
from benchmarks.steady.point import Point
from benchmarks.steady.steady_session import BatchCost, SteadySession
from benchmarks.workbench import Workbench

LARGE_ROWS = 50_000
CHECKED_OF_LARGE = 8
FILES_COUNTED_IN = 5
WARMING_BATCHES = 5
DRIFT_FROM, DRIFT_TO, DRIFT_LAST = 10, 20, 10
FILES_A_BATCH = (1, 2, 4, 8, 16, 32)
BATCHES_A_RATE = 4
WORTH_MORE_FILES = 1.1
"""Larger batches are tried as long as they bring this much."""
LONGEST_BATCH_S = 10.0
"""Nobody waits longer for an answer because that makes a rate look better."""
PACED_FILES = 9
PACED_SHARE = 0.8
"""Of the rate that lasts, where a second's rows do not pass in a second."""


@dataclass(frozen=True)
class Effort:
    """`limit_s` bounds warm-up and batches together, and then half of it the rates."""

    warm_up: int
    batches: int
    limit_s: float
    sustains: bool = True


def measure_point(bench: Workbench, name: str, point: Point, effort: Effort) -> dict[str, object]:
    queries = point.query_by_name(bench.options.seed)
    feed = Feed(point, bench.options.seed, bench.fresh_folder("steady-data"))
    bench.collect_garbage()
    began = time.monotonic()
    with SteadySession(bench.spark, point, feed, bench.fresh_folder("steady")) as session:
        with bench.steps.step(f"{name}: {point.queries} queries created"):
            figures: dict[str, object] = {"create_s": round(session.create(queries), 2)}
            session.start()
        deadline = began + effort.limit_s
        with bench.steps.step(f"{name}: {effort.warm_up} batches of {point.rows_per_batch:,} rows to warm up"):
            warming = session.run(effort.warm_up, deadline=deadline)
        costs: list[BatchCost] = []
        if len(warming) < effort.warm_up:
            figures["warming_up"] = _warming_figures(warming)
        else:
            with bench.steps.step(f"{name}: {effort.batches} batches"):
                costs = session.run(effort.batches, files_counted_in=FILES_COUNTED_IN, deadline=deadline)
        figures["batches"] = len(costs)
        if len(costs) < effort.batches:
            figures["stopped_after"] = round(time.monotonic() - began, 1)
            bench.steps.note(f"[yellow]{name}: stopped after {figures['stopped_after']} s[/yellow]")
        if costs:
            figures |= batch_figures(point, costs) | _memory_figures(session)
            bench.steps.note(f"  {figures['batch_p50_s']} s a batch, {figures['task_cpu_s']} s CPU of tasks")
            if effort.sustains:
                with bench.steps.step(f"{name}: the largest rate that lasts"):
                    figures |= _rate_figures(point, session, time.monotonic() + effort.limit_s / 2)
        return figures | _check(bench, name, point, feed, queries, session)


def batch_figures(point: Point, costs: Sequence[BatchCost]) -> dict[str, object]:
    """Means of what processes spent, so that work of every few batches counts; of the driver a batch without any."""
    seconds = [cost.seconds for cost in costs]
    return {
        "batch_p50_s": round(percentile(seconds, 0.5), 3),
        "batch_p99_s": round(percentile(seconds, 0.99), 3),
        "task_cpu_s": round(mean(cost.cpu.worker_s for cost in costs), 3),
        "jvm_cpu_s": round(mean(cost.cpu.jvm_s for cost in costs), 3),
        "driver_ms": round(median([cost.cpu.driver_s * 1e3 for cost in costs]), 1),
        "driver_mean_ms": round(mean(cost.cpu.driver_s * 1e3 for cost in costs), 1),
        "drift": drift(seconds),
        "files": median([cost.files for cost in costs if cost.files is not None]),
        "results_per_row": round(mean(cost.results for cost in costs) / point.rows_per_batch, 2),
        "buckets_per_store": round(median([cost.buckets_per_store for cost in costs]), 1),
        "live_rows": round(median([cost.live_rows for cost in costs])),
        "floor_s": float(f"{floor_s(costs[-1].touched, costs[-1].live_rows):.3g}"),
        "duration_ms": {part: round(median([cost.parts_ms[part] for cost in costs]), 1) for part in costs[0].parts_ms},
        "spread": {
            "batch_s": [round(cost.seconds, 3) for cost in costs],
            "task_cpu_s": [round(cost.cpu.worker_s, 2) for cost in costs],
        },
    }


def _warming_figures(costs: Sequence[BatchCost]) -> dict[str, object]:
    """Of a point that was stopped before its stores were full: its last batches, which are cheaper than full ones."""
    newest = costs[-WARMING_BATCHES:]
    if not newest:
        return {"batches": 0}
    return {
        "batches": len(costs),
        "batch_p50_s": round(percentile([cost.seconds for cost in newest], 0.5), 3),
        "task_cpu_s": round(mean(cost.cpu.worker_s for cost in newest), 3),
        "jvm_cpu_s": round(mean(cost.cpu.jvm_s for cost in newest), 3),
        "driver_ms": round(median([cost.cpu.driver_s * 1e3 for cost in newest]), 1),
        "buckets_per_store": round(newest[-1].buckets_per_store, 1),
    }


def drift(seconds: Sequence[float]) -> float | None:
    """The last ten batches over the second ten; None where these are not apart."""
    if len(seconds) < DRIFT_TO + DRIFT_LAST:
        return None
    return round(median(seconds[-DRIFT_LAST:]) / median(seconds[DRIFT_FROM:DRIFT_TO]), 3)


def _memory_figures(session: SteadySession) -> dict[str, object]:
    all_gb, own_gb = session.largest_worker_gb()
    return {"worker_rss_gb": round(all_gb, 3), "worker_own_gb": round(own_gb, 3)}


def _rate_figures(point: Point, session: SteadySession, deadline: float) -> dict[str, object]:
    """Each batch finds waiting what came while the one before ran; larger ones are tried while they bring more.

    A batch that takes t for n files lasts at n / t files a second: as many come while it runs as it takes away.
    """
    rates: dict[int, float] = {}
    for files in FILES_A_BATCH:
        costs = session.run(BATCHES_A_RATE, files=files, deadline=deadline)
        batch_s = mean(cost.seconds for cost in costs) if costs else 0.0
        if len(costs) < BATCHES_A_RATE or (rates and batch_s > LONGEST_BATCH_S):
            break
        rates[files] = files * point.rows_per_batch / batch_s
        if rates[files] < WORTH_MORE_FILES * max((rate for at, rate in rates.items() if at < files), default=0.0):
            break
    if not rates:
        return {"sustained_rows_per_s": None, "latency_p50_s": None}
    sustained = max(rates.values())
    interval_s = max(1.0, point.rows_per_batch / (PACED_SHARE * sustained))
    latencies = session.latencies_s(interval_s, PACED_FILES)
    return {
        "sustained_rows_per_s": round(sustained),
        "rows_per_s_by_files_a_batch": {str(files): round(rate) for files, rate in rates.items()},
        "latency_p50_s": round(percentile(latencies, 0.5), 3),
        "latency_at_rows_per_s": round(point.rows_per_batch / interval_s),
    }


def _check(
    bench: Workbench,
    name: str,
    point: Point,
    feed: Feed,
    queries: Mapping[str, SteadyQuery],
    session: SteadySession,
) -> dict[str, object]:
    count = CHECKED_OF_LARGE if point.rows > LARGE_ROWS else CHECKED_QUERIES
    chosen = {each: queries[each] for each in chosen_queries(queries, count)}
    with (
        bench.steps.step(f"{name}: the right answers of {len(chosen)} queries, by DuckDB"),
        DuckDbPeer(feed.files, bench.options.cores) as duckdb,
    ):
        wrong = wrong_answers(duckdb, point, feed.batches, chosen, session.answer)
    for query, difference in list(wrong.items())[:5]:
        bench.steps.note(f"[red]{name}, {query}: {difference}[/red]")
    return {"queries_checked": len(chosen), "results_equal": not wrong}
