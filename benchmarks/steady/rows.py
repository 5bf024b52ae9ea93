"""The figures of suite `steady` as lines of its table; parts that were not run have none."""

from __future__ import annotations

from benchmarks.report.figure_row import FigureRow, Figures, times_text

AXES = {
    "by_queries": "{} template queries",
    "by_rows": "{:,} rows a batch",
    "by_buckets": "about {} buckets a store",
    "mixed": "{} queries of every kind",
}
"""By axis, what a point of it is called; all else is as at the central point."""
GROWTHS = {
    "growth_by_queries": "batch of most queries over fewest",
    "growth_by_rows": "batch of most rows over fewest",
    "growth_by_buckets": "batch with most buckets over fewest",
}


def steady_rows(figures: Figures) -> list[FigureRow]:
    rows = [
        row
        for axis, text in AXES.items()
        for name, point in figures.get(axis, {}).items()
        for row in _point_rows(text.format(int(name)), point)
    ]
    for name, alone in figures.get("spark_alone", {}).items():
        text = f"Spark's batch of {int(name):,} rows for one join of two, alone (median of {alone['queries']})"
        rows.append(FigureRow(text, f"{alone['batch_p50_s']} s"))
    rows += [FigureRow(text, times_text(figures[key])) for key, text in GROWTHS.items() if key in figures]
    for name, point in figures.get("by_live_rows", {}).items():
        text = f"{int(name):,} rows kept: memory of a worker; of that no mapped files"
        rows.append(FigureRow(text, _memory(point) if point["batches"] else _stopped(point)))
    if figures.get("enough_results") is not None:
        text = f"at least {figures['fewest_results_per_row']:g} results a row, with 500 queries and more"
        rows.append(FigureRow(text, "yes" if figures["enough_results"] else "NO"))
    return rows


def steady_headline(figures: Figures) -> str:
    point = figures.get("by_queries", {}).get("500")
    if point is None or not point["batches"]:
        return "not all parts were run"
    return (
        f"500 queries, 10,000 rows: {point['batch_p50_s']} s a batch, {point['task_cpu_s']} s CPU of tasks, "
        f"{point['driver_ms']:.0f} ms of the driver"
    )


def _point_rows(name: str, point: Figures) -> list[FigureRow]:
    if not point["batches"]:
        return [FigureRow(f"{name}: batch, median", _stopped(point))]
    stopped = f"; {_stopped(point)}" if "stopped_after" in point else ""
    drift = "not measured" if point["drift"] is None else f"{point['drift']}"
    rows = [
        FigureRow(f"{name}: batch, median; 99%", f"{point['batch_p50_s']} s; {point['batch_p99_s']} s{stopped}"),
        FigureRow(
            f"{name}: CPU a batch of tasks; JVM; driver",
            f"{point['task_cpu_s']} s; {point['jvm_cpu_s']} s; {point['driver_ms']:.0f} ms",
        ),
        FigureRow(
            f"{name}: results a row; buckets a store; files a batch; drift",
            f"{point['results_per_row']}; {point['buckets_per_store']}; {point['files']:g}; {drift}",
        ),
    ]
    if point.get("floor_s"):
        over = point["task_cpu_s"] / point["floor_s"]
        text = f"{point['floor_s'] * 1e3:.0f} ms; tasks take {over:.1f} times that"
        rows.append(FigureRow(f"{name}: floor (searches, pairs and bytes alone, one core)", text))
    if point.get("sustained_rows_per_s"):
        rows.append(
            FigureRow(
                f"{name}: rows/s that last; arrival to committed answer, median, at",
                f"{point['sustained_rows_per_s']:,}; {point['latency_p50_s']} s at "
                f"{point['latency_at_rows_per_s']:,} rows/s",
            )
        )
    return rows


def _memory(point: Figures) -> str:
    return f"{point['worker_rss_gb']} GB; {point['worker_own_gb']} GB ({point['live_rows']:,} rows)"


def _stopped(point: Figures) -> str:
    text = f"stopped after {point['stopped_after']:g} s, {point['batches']} batches measured"
    warming = point.get("warming_up", {})
    if "batch_p50_s" not in warming:
        return text
    return f"{text}; {warming['batch_p50_s']} s at {warming['buckets_per_store']} buckets a store"
