from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from dovetail.cli.top_view import SortBy, TopFigures, frame


def progress(batch: int, queries: int = 3) -> dict[str, Any]:
    return {
        "batchId": batch,
        "timestamp": f"2026-01-01T00:00:{2 * batch:02}Z",
        "batchDuration": 100.0 + batch,
        "inputRowsPerSecond": 250.0 if batch else None,
        "streams": [
            {
                "name": "views",
                "numInputRows": 500,
                "inputRowsPerSecond": 250.0 if batch else None,
                "lateRows": 2,
                "watermark": "2026-01-01T00:00:00Z",
            }
        ],
        "queries": [
            {"name": f"q{number}", "state": state, "numOutputRows": 10 * number, "totalOutputRows": 100}
            for number, state in zip(range(queries), ["running", "quarantined", "running"] * queries, strict=False)
        ],
        "stores": [{"name": "views", "queries": ["q0", "q2"]}, {"name": "clicks", "queries": ["q0"]}],
        "hops": [],
    }


def plan() -> dict[str, Any]:
    costs = {"q0": (1.0, 0.25), "q2": (3.0, 0.75)}
    entries = [
        {"query": name, "share_ms": ms, "alone_ms": 2 * ms, "share_of_plan": share}
        for name, (ms, share) in costs.items()
    ]
    work = {"total_ms": 40.0, "alone_ms": 50.0, "saving_share": 0.2, "rows_read": 1500, "rows_read_alone": 2500}
    cost = {"total_ms": 4.0, "alone_ms": 8.0, "saving_share": 0.5, "measured": work, "queries": entries}
    return {"queries": list(costs), "cost": cost}


def figures(sort_by: SortBy = SortBy.COST) -> TopFigures:
    shown = TopFigures("http://here:1", sort_by)
    shown.read(progress(0))
    shown.plan = plan()
    return shown


def text_of(shown: TopFigures, height: int | None = None) -> list[str]:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(frame(shown, height))
    return capture.get().splitlines()


@pytest.mark.parametrize(
    ("sort_by", "names"),
    [
        (SortBy.COST, ["q2", "q0", "q1"]),
        (SortBy.ANSWERS, ["q2", "q1", "q0"]),
        (SortBy.STATE, ["q1", "q0", "q2"]),
        (SortBy.NAME, ["q0", "q1", "q2"]),
    ],
)
def test_queries_are_sorted(sort_by: SortBy, names: list[str]) -> None:
    assert [line.name for line in figures(sort_by).lines] == names


def test_a_line_says_what_a_query_costs_and_shares() -> None:
    (line,) = [line for line in text_of(figures()) if line.startswith("q0")]
    assert line.split() == ["q0", "running", "25%", "1.00", "2.00", "1", "of", "2", "0", "100"]


def test_a_query_without_a_price_has_none() -> None:
    (line,) = [line for line in text_of(figures()) if line.startswith("q1")]
    assert line.split()[:5] == ["q1", "quarantined", "-", "-", "-"]


def test_rates_are_those_of_the_clock_and_not_known_at_first() -> None:
    shown = figures()
    (line,) = [line for line in text_of(shown) if line.startswith("views")]
    assert line.split()[:3] == ["views", "-", "500"]
    shown.read(progress(1))
    (line,) = [line for line in text_of(shown) if line.startswith("views")]
    assert line.split()[:3] == ["views", "250", "500"]
    assert "250 rows/s" in text_of(shown)[0]
    shown.read(progress(9))
    assert list(shown.batch_ms) == [100.0, 101.0, 109.0]


def test_what_sharing_saves_is_what_was_measured() -> None:
    assert [line.strip() for line in text_of(figures())[1:3]] == [
        "sharing saves 20%: 2 queries in one plan, 40 ms of work a batch; one by one 50 ms",
        "1,500 rows a batch are read once; one by one 2,500 would be",
    ]


def test_before_a_batch_has_run_by_the_plan_nothing_is_said_of_sharing() -> None:
    shown = figures()
    cost = {**plan()["cost"], "measured": None}
    shown.plan = {**plan(), "cost": cost}
    assert "what sharing saves is known once a batch has run by it" in text_of(shown)[1]
    assert "%" not in text_of(shown)[1]


def test_the_same_batch_counts_once() -> None:
    shown = figures()
    shown.read(progress(0))
    assert list(shown.batch_ms) == [100.0]


@pytest.mark.parametrize("height", [12, 24, 50])
def test_a_frame_fits_the_terminal_and_says_what_it_leaves_out(height: int) -> None:
    shown = figures()
    shown.read(progress(1, queries=500))
    lines = text_of(shown, height)
    assert len(lines) <= height
    assert "more" in lines[-1]
    assert len(text_of(shown)) > 500


def test_without_a_batch_it_says_so() -> None:
    assert "no batch yet" in text_of(TopFigures("http://here:1"))[0]


def test_elastic_partitions_are_shown_with_their_load() -> None:
    shown = figures()
    units = {"partitions": 2, "nextPartitions": 4, "load": 0.934, "executors": 1}
    shown.read({**progress(1), "units": units})
    assert "2 partitions on 1 executors at load 0.93, next 4" in "\n".join(text_of(shown))
