from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from dovetail.demo.figures import Figures
from dovetail.demo.invitation import EXAMPLE_SQL, invitation
from dovetail.demo.queries import QUERIES
from dovetail.demo.streams import STREAMS
from dovetail.demo.view import plain_line, screen


def progress(batch_id: int, q1_total: int) -> dict[str, Any]:
    return {
        "batchId": batch_id,
        "batchDuration": 210,
        "streams": [
            {"name": "views", "numInputRows": 4000, "inputRowsPerSecond": 2000.0, "lateRows": 0, "watermark": None}
        ],
        "queries": [{"name": "Q1", "state": "running", "numOutputRows": 50, "totalOutputRows": q1_total}],
    }


def plan(queries: tuple[str, ...] = ("Q1",), store_count: int = 1) -> dict[str, Any]:
    store = {"name": "views", "rows": {"stored": {"value": 9000.0}}, "queries": list(queries)}
    step = {
        "member": 1,
        "lookup": {"name": "views", "keys": [{"stored": "vid", "probing": "vid"}]},
        "last_batch": {"looked_up": 500, "found": 50},
        "queries": list(queries),
        "steps": [],
    }
    work = {"saving_share": 0.25, "rows_read": 12_000, "rows_read_alone": 25_000}
    return {
        "queries": list(queries),
        "stores": [store] * store_count,
        "probes": [{"name": "videos", "steps": [step]}],
        "cost": {"measured": work},
    }


def figures() -> Figures:
    return Figures([stream.name for stream in STREAMS], [query.name for query in QUERIES])


def test_rates_of_streams_are_progress_s_and_those_of_answers_counted_between_looks() -> None:
    shown = figures()
    shown.read(progress(0, 0), 1.0)
    shown.read(progress(1, 100), 3.0)
    assert list(shown.by_stream["views"].rates) == [2000.0, 2000.0]
    assert list(shown.by_query["Q1"].rates) == [50.0]


def test_a_batch_that_takes_long_is_told() -> None:
    shown = figures()
    shown.begin(10.0)
    shown.read(None, 12.0)
    assert shown.batch_under_way is None
    shown.read(None, 22.0)
    assert shown.batch_under_way == "batch 0 runs since 12 s"
    shown.read(progress(0, 0), 23.0)
    assert shown.batch_under_way is None
    shown.read(progress(0, 0), 30.0)
    assert "batch 1 runs since 7 s" in plain_line(shown)


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


def test_screen_shows_who_uses_a_store_and_what_sharing_saves() -> None:
    shown = figures()
    shown.read(progress(0, 10), 1.0)
    shown.read_plan(plan(), 1.0)
    assert shown.saving is None
    console = Console(width=100)
    with console.capture() as capture:
        console.print(screen(shown, 1.0, 60.0, height=40))
    (line,) = [line for line in capture.get().splitlines() if "videos → views by vid" in line]
    assert (line.count("●"), line.count("·")) == (1, 2)
    shown.read_plan(plan(("Q1", "Q2")), 2.0)
    saved = "sharing saves 25% of the work; 12,000 rows a batch are read once, not 25,000"
    assert saved in [text for _, text in shown.events]
    with console.capture() as capture:
        console.print(screen(shown, 1.0, 60.0, height=40))
    assert f"One plan: {saved}" in capture.get()


def test_screen_shows_the_newest_answer_of_each_query() -> None:
    shown = figures()
    shown.newest_by_query["Q2"] = {"usr_id": 7, "comment": "meh", "ts": datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)}
    assert "Q2  usr_id 7  comment meh  ts 03:04:05.678" in screen_lines(shown, 50)
    assert "Q1  none yet" in screen_lines(shown, 50)


@pytest.mark.parametrize("height", [24, 35, 36, 50])
def test_screen_fills_the_terminal_but_one_line(height: int) -> None:
    shown = figures()
    shown.read(progress(0, 10), 1.0)
    shown.read_plan(plan(store_count=40), 1.0)
    for second in range(10):
        shown.note(float(second), "something happened")
    console = Console(width=80)
    with console.capture() as capture:
        console.print(screen(shown, 1.0, 60.0, height=height))
    assert len(capture.get().splitlines()) == height - 1


def test_a_new_query_says_once_what_it_shares() -> None:
    shown = figures()
    shown.read_plan(plan(), 1.0)
    for second in (2.0, 3.0):
        shown.read_plan(plan(("Q1", "Q2")), second)
    assert [text for _, text in shown.events][:1] == ["Q2 shares 2 of its 2 stores and steps with Q1"]
    assert len(shown.events) == 2


def test_plain_line_names_only_queries_that_exist() -> None:
    shown = figures()
    shown.read(progress(0, 10), 1.0)
    line = plain_line(shown)
    assert "Q1 10" in line
    assert "Q2" not in line


def with_visitor(name: str, batch_id: int, total: int, state: str = "running") -> dict[str, Any]:
    own = {"name": name, "state": state, "numOutputRows": 5, "totalOutputRows": total}
    base = progress(batch_id, 0)
    return {**base, "queries": [*base["queries"], own]}


def test_a_query_from_outside_is_shown_beside_the_others() -> None:
    shown = figures()
    shown.read(with_visitor("mine", 0, 7), 1.0)
    assert (shown.visitors, shown.has_visitors) == (["mine"], True)
    console = Console(width=100)
    with console.capture() as capture:
        console.print(screen(shown, 1.0, 60.0, height=40))
    assert [line.split()[0] for line in capture.get().splitlines() if "asked from outside" in line] == ["mine"]
    assert "mine created from outside" in [text for _, text in shown.events]
    assert "mine 7" in plain_line(shown)


def test_a_visitor_that_was_dropped_keeps_nobody_waiting() -> None:
    shown = figures()
    shown.read(with_visitor("mine", 0, 7), 1.0)
    shown.read(with_visitor("mine", 1, 7, state="dropped"), 2.0)
    assert not shown.has_visitors
    shown.read(with_visitor("other", 2, 1), 3.0)
    shown.read(progress(3, 0), 4.0)
    assert not shown.has_visitors


def test_a_query_that_is_created_again_counts_from_nothing() -> None:
    shown = figures()
    shown.read(with_visitor("mine", 0, 700), 1.0)
    shown.read(with_visitor("mine", 1, 3), 2.0)
    assert shown.by_query["mine"].total == 3


@pytest.mark.parametrize("height", [24, 35, 36, 50])
def test_screen_with_visitors_and_invitation_fits_the_terminal(height: int) -> None:
    shown = figures()
    invited = screen_lines(shown, height)
    for number in range(5):
        shown.read(with_visitor(f"visitor_with_a_long_name_{number}", number, 1), float(number))
    assert max(len(invited), len(screen_lines(shown, height))) <= height - 1
    assert "second terminal" in "".join(invited)


def screen_lines(shown: Figures, height: int) -> list[str]:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(screen(shown, 1.0, 60.0, height=height, invitation=invitation()))
    return capture.get().splitlines()


def test_the_invitation_is_a_command_that_a_shell_reads_as_one() -> None:
    text = "\n".join(invitation()[1:-1])
    assert shlex.split(text)[-3:-1] == ["create", "mine"]
    assert shlex.split(text)[-1].split() == " ".join(EXAMPLE_SQL).split()
