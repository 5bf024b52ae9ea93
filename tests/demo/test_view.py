from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from dovetail.demo.figures import Figures
from dovetail.demo.queries import QUERIES
from dovetail.demo.streams import STREAMS
from dovetail.demo.view import plain_line, screen


def progress(batch_id: int, q1_total: int) -> dict[str, Any]:
    return {
        "batchId": batch_id,
        "batchDuration": 210,
        "streams": [{"name": "views", "numInputRows": 4000, "lateRows": 0, "watermark": None}],
        "queries": [{"name": "Q1", "state": "running", "numOutputRows": 50, "totalOutputRows": q1_total}],
        "stores": [{"name": "views by vid", "numRows": 9000, "numBytes": 1, "numBuckets": 2, "queries": ["Q1"]}],
        "hops": [{"hop": 1, "step": "videos probe views", "probeRows": 500, "matchedRows": 50, "queries": ["Q1"]}],
    }


def figures() -> Figures:
    return Figures([stream.name for stream in STREAMS], [query.name for query in QUERIES])


def test_rates_are_counts_over_the_time_between_batches() -> None:
    shown = figures()
    shown.read(progress(0, 0), 1.0)
    shown.read(progress(1, 100), 3.0)
    assert list(shown.by_stream["views"].rates) == [2000.0]
    assert list(shown.by_query["Q1"].rates) == [50.0]


def test_the_same_batch_counts_once() -> None:
    shown = figures()
    assert [shown.read(progress(0, 7), 1.0), shown.read(progress(0, 7), 1.2)] == [True, False]
    assert shown.by_stream["views"].total == 4000


def test_results_of_a_batch_between_two_looks_are_counted() -> None:
    shown = figures()
    shown.read(progress(0, 10), 1.0)
    shown.read(progress(5, 400), 2.0)
    assert shown.by_query["Q1"].total == 400


def test_a_query_that_progress_no_longer_names_was_dropped() -> None:
    shown = figures()
    shown.read(progress(0, 10), 1.0)
    shown.read({**progress(5, 10), "queries": []}, 2.0)
    assert shown.state_by_query == {"Q1": "dropped", "Q2": "waiting", "Q3": "waiting"}


def test_screen_shows_who_uses_a_store() -> None:
    shown = figures()
    shown.read(progress(0, 10), 1.0)
    console = Console(width=100)
    with console.capture() as capture:
        console.print(screen(shown, 1.0, 60.0, height=40))
    (line,) = [line for line in capture.get().splitlines() if "views by vid" in line]
    assert (line.count("●"), line.count("·")) == (1, 2)


@pytest.mark.parametrize("height", [24, 31, 32, 50])
def test_screen_fills_the_terminal_but_one_line(height: int) -> None:
    shown = figures()
    shown.read({**progress(0, 10), "stores": progress(0, 10)["stores"] * 40}, 1.0)
    for second in range(10):
        shown.note(float(second), "something happened")
    console = Console(width=80)
    with console.capture() as capture:
        console.print(screen(shown, 1.0, 60.0, height=height))
    assert len(capture.get().splitlines()) == height - 1


def test_a_new_query_says_once_what_it_shares() -> None:
    shown = figures()
    shown.read(progress(0, 0), 1.0)
    stores = [{**progress(1, 0)["stores"][0], "queries": ["Q1", "Q2"]}]
    for batch_id in (1, 2):
        shown.read({**progress(batch_id, 0), "stores": stores}, 1.0 + batch_id)
    assert [text for _, text in shown.events] == ["Q2 shares 1 of its 1 stores and steps with Q1"]


def test_plain_line_names_only_queries_that_exist() -> None:
    shown = figures()
    shown.read(progress(0, 10), 1.0)
    line = plain_line(shown, 1.0)
    assert "Q1 10" in line
    assert "Q2" not in line
