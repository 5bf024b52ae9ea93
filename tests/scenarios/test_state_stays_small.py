"""Long runs of many small batches: merges and expiry keep the state small and the answers exact."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.testing.local_session import LocalSession
from tests.support.asserts import assert_same_answers, check_run, open_session
from tests.support.cases import EngineCase, QueryCase, Row, StreamCase, moment_of
from tests.support.faults.runs import read_run
from tests.support.generators.cases import START_US
from tests.support.oracles.answers import Answers, answers_of_table

BATCHES = 72
ROWS_PER_BATCH = 6
SECOND = 1_000_000
STREAMS = tuple(
    StreamCase(name, (("k", "int"), ("v", "int"), ("ts", "timestamp")), "ts", SECOND) for name in ("clicks", "views")
)
INTERVAL_JOIN = (
    "SELECT a.k, a.v, b.v FROM clicks a JOIN views b ON a.k = b.k"
    " AND b.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts + INTERVAL 3 SECONDS"
)
FULL_HISTORY = "SELECT a.k, a.v, b.v FROM clicks a JOIN views b ON a.k = b.k AND a.v = b.v"
HOP_JOIN = (
    "SELECT a.v, b.v FROM (SELECT *, window(ts, '4 seconds', '2 seconds') AS w FROM clicks) a"
    " JOIN (SELECT *, window(ts, '4 seconds', '2 seconds') AS w FROM views) b ON a.k = b.k AND a.w = b.w"
)
HOP_JOIN_IN_DUCKDB = HOP_JOIN.replace(
    "window(ts, '4 seconds', '2 seconds')", f"unnest(hop_windows(ts, {4 * SECOND}, {2 * SECOND}, 0))"
)


def small_batch(batch: int) -> dict[str, tuple[Row, ...]]:
    """One second of event time: few keys, values that hardly repeat."""
    return {
        stream.name: tuple(
            (
                (batch + row) % 5,
                batch * ROWS_PER_BATCH + row,
                moment_of(START_US + batch * SECOND + row * SECOND // ROWS_PER_BATCH),
            )
            for row in range(ROWS_PER_BATCH)
        )
        for stream in STREAMS
    }


def long_case(*queries: QueryCase) -> EngineCase:
    return EngineCase(STREAMS, tuple(small_batch(batch) for batch in range(BATCHES)), queries)


def run_long(case: EngineCase, checkpoint_dir: Path) -> tuple[LocalSession, list[dict[str, int]]]:
    """The session at the end, and buckets, rows and files of state after every batch."""
    session = open_session(case, checkpoint_dir)
    for query in case.queries:
        session.create_query(query.sql, name=query.name)
    sizes = []
    for batch in range(len(case.batches)):
        session.push(case.tables(batch), splits=2)
        stores = session.progress["stores"]
        sizes.append(
            {
                "buckets": max(store["numBuckets"] for store in stores),
                "rows": max(store["numRows"] for store in stores),
                "files": sum(path.is_file() for path in (checkpoint_dir / "buckets").rglob("*")),
            }
        )
    return session, sizes


@pytest.mark.parametrize(
    ("sql", "duckdb_sql", "rows_per_event"),
    [(INTERVAL_JOIN, INTERVAL_JOIN, 1), (HOP_JOIN, HOP_JOIN_IN_DUCKDB, 2)],
    ids=["interval", "hop"],
)
def test_windowed_state_stays_bounded_and_exact(tmp_path: Path, sql: str, duckdb_sql: str, rows_per_event: int) -> None:
    case = long_case(QueryCase("q", sql, sql, duckdb_sql))
    session, sizes = run_long(case, tmp_path)
    check_run(case, read_run(session))
    session.close()
    # A window of at most eight seconds with its lateness, and as much again for buckets that die only as a whole.
    assert max(size["rows"] for size in sizes) <= 20 * ROWS_PER_BATCH * rows_per_event
    assert max(size["buckets"] for size in sizes) <= 24
    assert max(size["files"] for size in sizes) <= 2 * 24
    assert max(size["rows"] for size in sizes[36:]) <= max(size["rows"] for size in sizes[:36])


def test_full_history_keeps_every_row_in_few_buckets(tmp_path: Path) -> None:
    case = long_case(QueryCase("q", FULL_HISTORY, FULL_HISTORY, FULL_HISTORY))
    session, sizes = run_long(case, tmp_path)
    check_run(case, read_run(session))
    session.close()
    assert sizes[-1]["rows"] == BATCHES * ROWS_PER_BATCH
    # 144 buckets were written; merging by fours leaves at most three or so a level.
    assert max(size["buckets"] for size in sizes) <= 24


def test_a_drop_frees_the_stores_that_nobody_else_uses(tmp_path: Path) -> None:
    case = long_case()
    session = open_session(case, tmp_path)
    session.create_query(FULL_HISTORY, name="goes")
    session.create_query(INTERVAL_JOIN, name="stays")
    for batch in range(40):
        session.push(case.tables(batch))
    many = max(store["numRows"] for store in session.progress["stores"])
    session.drop_query("goes")
    for batch in range(40, 60):
        session.push(case.tables(batch))
    few = max(store["numRows"] for store in session.progress["stores"])
    session.drop_query("stays")
    session.push(case.tables(60))
    assert many == 40 * ROWS_PER_BATCH
    assert few <= 20 * ROWS_PER_BATCH
    assert session.progress["stores"] == []
    # A start may fall back to the batch before: its files go with the next one.
    session.push(case.tables(61))
    assert not [path for path in (tmp_path / "buckets").rglob("*") if path.is_file()]
    session.close()


def answers(session: LocalSession, name: str) -> Answers:
    return answers_of_table(session.results(name))


def test_a_name_that_was_dropped_can_be_used_for_another_query(tmp_path: Path) -> None:
    case = long_case()
    session = open_session(case, tmp_path)
    session.create_query(INTERVAL_JOIN, name="q")
    session.push(case.tables(0))
    first = answers(session, "q")
    session.drop_query("q")
    session.push(case.tables(1))
    assert_same_answers(answers(session, "q"), first, "a dropped query keeps its answers")
    handle = session.create_query(FULL_HISTORY, name="q")
    session.push(case.tables(2))
    assert handle.status.created_batch == 2
    assert sum(answers(session, "q").values()) == handle.status.total_rows
    session.close()


def test_state_without_rows_is_no_trouble(tmp_path: Path) -> None:
    session = open_session(long_case(), tmp_path)
    session.create_query(INTERVAL_JOIN, name="q")
    for _ in range(10):
        session.push({})
    empty: dict[str, pa.Table] = {stream.name: stream.table(()) for stream in STREAMS}
    session.push(empty)
    assert session.results("q").num_rows == 0
    session.close()
