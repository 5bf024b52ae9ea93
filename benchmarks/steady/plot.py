"""How a batch of `steady` grows: by queries, by rows and by buckets."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report.draw import drawing, lines, plain_ticks
from benchmarks.report.figure_row import Figures

PANELS = {"by_queries": "queries", "by_rows": "rows a batch", "by_buckets": "buckets a store"}


def plot_steady(figures: Figures, path: Path) -> None:
    """A point that was stopped before a batch counted has no dot; an axis that was not run has an empty panel."""
    with drawing(path, panels=len(PANELS)) as panels:
        for axes, (axis, over) in zip(panels, PANELS.items(), strict=True):
            points = {int(name): point for name, point in figures.get(axis, {}).items() if point["batches"]}
            if axis == "by_buckets":
                points = {point["buckets_per_store"]: point for point in points.values()}
            series = {
                "batch, median": {at: point["batch_p50_s"] for at, point in points.items()},
                "CPU of tasks": {at: point["task_cpu_s"] for at, point in points.items()},
                "CPU of the driver": {at: point["driver_ms"] / 1e3 for at, point in points.items()},
            }
            lines(axes, series, unit="seconds", over=over)
            if points:
                axes.set_yscale("log")
                plain_ticks(axes, list(points))
