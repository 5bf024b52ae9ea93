"""Draws docs/figures/shared_plan.svg: the plan that the demo's three queries share, as the engine really makes it.

Run it from the repository's root: `.venv/bin/python docs/figures/make_shared_plan.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from dovetail.demo.queries import QUERIES
from dovetail.engine.explain.explain import explain_plan
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TARGET = Path(__file__).with_name("shared_plan.svg")
COLOUR_BY_QUERY = {"Q1": "#2a78b5", "Q2": "#e07b1a", "Q3": "#3a9a4a"}
ROWS = 2_000
KEYS = {"vid": 500, "usr_id": 500}
TEXTS = {"geo": ("US", "GER", "EU"), "lang": ("ENG", "GER"), "comment": ("nice", "meh"), "reaction": ("wow", "angry")}
COLUMNS_BY_STREAM = {
    "videos": ("vid", "length", "geo", "lang"),
    "views": ("usr_id", "vid", "duration", "geo"),
    "comments": ("usr_id", "comment", "length", "emojis"),
    "reactions": ("usr_id", "reaction"),
}


@dataclass(frozen=True)
class Box:
    """A step or a start; `column` counts steps from the left, `row` leaves from the top."""

    text: str
    queries: tuple[str, ...]
    answers: tuple[str, ...]
    column: int
    row: float
    children: tuple[Box, ...]

    def walk(self) -> Iterator[Box]:
        yield self
        for child in self.children:
            yield from child.walk()


def demo_plan() -> dict[str, Any]:
    """After two batches, so that probe orders follow what was counted."""
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        session = LocalSession(folder)
        tables = {name: _table(columns, rng) for name, columns in COLUMNS_BY_STREAM.items()}
        for name, table in tables.items():
            session.create_stream(name, table.schema, "ts")
        for query in QUERIES:
            session.create_query(query.sql, query.name)
        for _ in range(2):
            session.push(tables)
        plan = explain_plan(session.engine, "json")
        session.close()
    return plan


def _table(columns: tuple[str, ...], rng: np.random.Generator) -> pa.Table:
    arrays = {
        column: pa.array(
            rng.choice(TEXTS[column], ROWS) if column in TEXTS else rng.integers(0, KEYS.get(column, 60), ROWS)
        )
        for column in columns
    }
    return pa.table({**arrays, "ts": pa.array(np.arange(ROWS) * 2_000, pa.timestamp("us", "UTC"))})


def boxes_of(plan: Mapping[str, Any]) -> list[Box]:
    boxes: list[Box] = []
    row = 0.0
    for probe in plan["probes"]:
        children, row = _children(probe["steps"], 1, row)
        middle = sum(child.row for child in children) / len(children)
        boxes.append(Box(f"new {probe['start']}", tuple(probe["queries"]), (), 0, middle, children))
        row += 0.3
    return boxes


def _children(steps: list[dict[str, Any]], column: int, row: float) -> tuple[tuple[Box, ...], float]:
    boxes = []
    for step in steps:
        below, after = _children(step["steps"], column + 1, row)
        own = sum(child.row for child in below) / len(below) if below else row
        key = step["index"].strip("[]")
        answers = tuple(answer["query"] for answer in step["answers"])
        boxes.append(Box(f"{step['store']}\nby {key}", tuple(step["queries"]), answers, column, own, below))
        row = after if below else row + 1
    return tuple(boxes), row


def draw(boxes: list[Box], target: Path) -> None:
    with mpl.rc_context(
        {"svg.hashsalt": "dovetail", "svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif"}
    ):
        every = [box for root in boxes for box in root.walk()]
        figure = Figure(figsize=(8.2, 0.52 * (max(box.row for box in every) + 2.4)), layout="constrained")
        axes = figure.subplots()
        for box in every:
            for child in box.children:
                _line(axes, box, child)
        for box in every:
            _box(axes, box)
        _legend(axes, max(box.row for box in every))
        axes.set_xlim(-0.5, 2.8)
        axes.invert_yaxis()
        axes.axis("off")
        figure.savefig(target, format="svg", metadata={"Date": None})


def _line(axes: Axes, box: Box, child: Box) -> None:
    for query in child.queries:
        begin, end = _shift(box, query), _shift(child, query)
        places = [box.column, box.column + 0.45, child.column - 0.38, child.column]
        rows = [box.row + begin, box.row + begin, child.row + end, child.row + end]
        axes.plot(places, rows, color=COLOUR_BY_QUERY[query], linewidth=2.2, zorder=1, solid_capstyle="round")


def _shift(box: Box, query: str) -> float:
    """Queries that go through a box together are lines beside each other."""
    return (box.queries.index(query) - (len(box.queries) - 1) / 2) * 0.09


def _box(axes: Axes, box: Box) -> None:
    is_start = box.column == 0
    axes.text(
        box.column,
        box.row,
        box.text,
        ha="center",
        va="center",
        fontsize=9,
        fontweight="bold" if is_start else "normal",
        linespacing=1.1,
        bbox={
            "boxstyle": "round,pad=0.35",
            "facecolor": "#f3f3f3" if is_start else "white",
            "edgecolor": "#b03060" if len(box.queries) > 1 and not is_start else "#888888",
            "linewidth": 1.8 if len(box.queries) > 1 and not is_start else 0.9,
        },
        zorder=3,
    )
    for place, query in enumerate(box.answers):
        at, row = (box.column + 0.42 + 0.2 * place, box.row - 0.4) if box.children else (box.column + 0.55, box.row)
        axes.plot([box.column, at], [box.row, row], color=COLOUR_BY_QUERY[query], linewidth=2.2, zorder=1)
        axes.text(
            at,
            row,
            query,
            ha="center",
            va="center",
            fontsize=9,
            color="white",
            fontweight="bold",
            bbox={"boxstyle": "circle,pad=0.2", "facecolor": COLOUR_BY_QUERY[query], "edgecolor": "none"},
            zorder=4,
        )


def _legend(axes: Axes, last_row: float) -> None:
    text = (
        "Each new row looks up stored rows of other streams, left to right. Red frame: one lookup for several queries."
    )
    axes.text(1.15, last_row + 0.9, text, ha="center", va="center", fontsize=8.5, color="#444444")


if __name__ == "__main__":
    draw(boxes_of(demo_plan()), TARGET)
