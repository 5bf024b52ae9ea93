"""The page about EXPLAIN shows what EXPLAIN says."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.engine.explain.explain import explain_plan, explain_query
from dovetail.testing.local_session import LocalSession

PAGE = Path(__file__).parents[3] / "docs" / "explain.md"
TIME = pa.timestamp("us", tz="UTC")
PAID = """SELECT o.order_id, p.paid FROM orders o
JOIN payments p ON o.order_id = p.order_id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 5 SECONDS"""
SENT = """SELECT o.order_id, s.weight FROM orders o
JOIN payments p ON o.order_id = p.order_id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 5 SECONDS
JOIN shipments s ON s.order_id = o.order_id AND s.ts BETWEEN p.ts AND p.ts + INTERVAL 5 SECONDS
WHERE o.amount > 50"""
ROWS_AND_STEP = {"orders": ("amount", 1200, 1), "payments": ("paid", 900, 3), "shipments": ("weight", 600, 7)}


def rows_of(stream: str, second: int) -> pa.Table:
    column, rows, step = ROWS_AND_STEP[stream]
    times = [second * 1_000_000 + number * 1_000_000 // rows for number in range(rows)]
    return pa.table(
        {
            "order_id": [number * step % 2000 + 100 * second for number in range(rows)],
            column: [number % 100 for number in range(rows)],
            "ts": pa.array(times).cast(TIME),
        }
    )


def explained(folder: Path) -> tuple[str, str]:
    """What is said of the plan and of `sent` when six batches, two seconds apart, have run."""
    now_s = 0.0
    session = LocalSession(folder, clock=lambda: now_s)
    for name in ROWS_AND_STEP:
        session.create_stream(name, rows_of(name, 0).schema, event_time="ts", lateness="1 second")
    session.create_query(PAID, "paid")
    sent = session.create_query(SENT, "sent")
    for second in range(6):
        now_s += 2.0
        session.push({name: rows_of(name, second) for name in ROWS_AND_STEP})
    texts = explain_plan(session.engine), explain_query(session.engine, sent.id)
    session.close()
    return texts


def without_measured_times(text: str) -> list[str]:
    """Tasks take as long as they take; what the cost model says is the same everywhere."""
    measured = re.compile(r"batches took|sharing saves|reading:|joining: .*, alone .*, as")
    times = re.compile(r"[\d,.]+( ms|%)|less|more")
    return [times.sub("#", line) if measured.search(line) else line for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return explained(tmp_path_factory.mktemp("page"))


def blocks() -> list[str]:
    return re.findall(r"```\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_plan_is_shown_as_it_is_told(texts: tuple[str, str]) -> None:
    assert without_measured_times(blocks()[0]) == without_measured_times(texts[0])


def test_the_path_is_shown_as_it_is_told(texts: tuple[str, str]) -> None:
    told = [line.removeprefix("│  ") for line in texts[1].splitlines()]
    shown = blocks()[1].rstrip().splitlines()
    first = told.index(shown[0])
    assert told[first : first + len(shown)] == shown
