"""How a batch of `steady` grows: by queries, by rows and by buckets."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report.draw import drawing, lines, plain_ticks
from benchmarks.report.figure_row import Figures
from benchmarks.steady.point import Point

PANELS = {"by_queries": "queries", "by_rows": "rows a batch", "by_buckets": "buckets a store"}
CENTRAL = Point()


def plot_steady(figures: Figures, path: Path) -> None:
    """A point that was stopped before a batch counted has no dot; an axis that was not run has an empty panel."""
    with drawing(path, panels=len(PANELS)) as panels:
        for axes, (axis, over) in zip(panels, PANELS.items(), strict=True):
            points = {int(name): point for name, point in figures.get(axis, {}).items() if point["batches"]}
            if axis == "by_buckets":
                points = {point["buckets_per_store"]: point for point in points.values()}
            series = {
                "Dovetail: batch, median": {at: point["batch_p50_s"] for at, point in points.items()},
                "Dovetail: CPU of tasks": {at: point["task_cpu_s"] for at, point in points.items()},
                "Dovetail: CPU of the driver": {at: point["driver_ms"] / 1e3 for at, point in points.items()},
                "floor": {at: point.get("floor_s") for at, point in points.items()},
            }
            if spark := _spark_s(figures.get("spark_alone", {}), axis, list(points)):
                series["Spark, query by query (expected)"] = spark
            lines(axes, series, unit="seconds", over=over)
            if points:
                axes.set_yscale("log")
                plain_ticks(axes, list(points))


def _spark_s(alone: Figures, axis: str, places: list[int]) -> dict[int, float]:
    """A batch of Spark's for one query, times the queries."""
    rows_and_queries = {
        "by_queries": [(str(CENTRAL.rows), queries) for queries in places],
        "by_rows": [(str(rows), CENTRAL.queries) for rows in places],
    }
    return {
        at: alone[rows]["batch_p50_s"] * queries
        for at, (rows, queries) in zip(places, rows_and_queries.get(axis, []), strict=False)
        if rows in alone
    }
