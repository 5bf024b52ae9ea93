"""Estimates at creation: what is added to what is kept, where figures come from, and who is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from dovetail.core.errors import LimitExceeded
from dovetail.stats.estimate import Origin
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

ROWS_A_SECOND = 50


def pair(seconds: int, more: str = "") -> str:
    return (
        "SELECT a.k, a.v, b.v FROM a JOIN b ON a.k = b.k"
        f" AND b.ts BETWEEN a.ts - INTERVAL {seconds} SECONDS AND a.ts + INTERVAL {seconds} SECONDS{more}"
    )


def push_seconds(bench: Bench, session: LocalSession, first: int, last: int) -> None:
    for second in range(first, last):
        rows = [(row % 7, row, second + row / ROWS_A_SECOND) for row in range(ROWS_A_SECOND)]
        bench.push(session, a=rows, b=rows)


def test_nothing_is_known_before_the_first_batch_and_nobody_is_refused(bench: Bench) -> None:
    session = bench.open(max_query_bytes=1, max_query_cost_ms=1e-9)
    query = session.create_query(pair(1000), "q")
    estimate = session.engine.queries.estimate_of(query.id)
    assert estimate is not None
    assert estimate.added_bytes is None
    assert estimate.alone_ms.origin is Origin.ASSUMED
    assert "unknown" in str(estimate)


def test_a_wider_window_adds_what_it_keeps_longer(bench: Bench) -> None:
    session = bench.open()
    session.create_query(pair(2), "q")
    push_seconds(bench, session, 0, 6)
    same = session.engine.queries.estimate(pair(2))
    assert same.added_rows is not None
    assert same.added_rows.value == 0
    wider = session.engine.queries.estimate(pair(12))
    assert wider.added_rows is not None
    assert wider.added_rows.value == pytest.approx(2 * 10 * ROWS_A_SECOND, rel=0.1)
    assert wider.added_rows.origin is not Origin.ASSUMED


def test_the_estimate_comes_true(bench: Bench) -> None:
    session = bench.open()
    session.create_query(pair(2), "q")
    push_seconds(bench, session, 0, 6)
    before = sum(meta.size_bytes for meta in session.engine.head.state.buckets)
    estimate = session.engine.queries.estimate(pair(12))
    assert estimate.added_bytes is not None
    session.create_query(pair(12), "wider")
    push_seconds(bench, session, 6, 30)
    stored = sum(meta.size_bytes for meta in session.engine.head.state.buckets) - before
    assert estimate.added_bytes.value == pytest.approx(stored, rel=0.5)


def test_results_come_true(bench: Bench) -> None:
    session = bench.open()
    session.create_query(pair(2), "q")
    push_seconds(bench, session, 0, 8)
    estimate = session.engine.queries.estimate(pair(2))
    (entry,) = (session.progress or {})["queries"]
    assert estimate.results_a_batch.value == pytest.approx(entry["numOutputRows"], rel=0.5)
    assert estimate.results_a_batch.origin is Origin.ESTIMATED


def test_who_shares_every_step_pays_half(bench: Bench) -> None:
    session = bench.open()
    session.create_query(pair(2), "q")
    push_seconds(bench, session, 0, 4)
    shared = session.engine.queries.estimate(pair(2))
    assert shared.share_ms.value == pytest.approx(shared.alone_ms.value / 2)
    other = session.engine.queries.estimate("SELECT a.k FROM a JOIN b ON a.v = b.v WITHIN 2 SECONDS")
    assert other.share_ms.value == pytest.approx(other.alone_ms.value)


def test_what_would_store_too_much_is_refused_with_figures(bench: Bench) -> None:
    session = bench.open(max_query_bytes=100_000)
    session.create_query(pair(2), "q")
    push_seconds(bench, session, 0, 4)
    with pytest.raises(LimitExceeded) as refused:
        session.create_query(pair(100_000), "large")
    assert refused.value.what.startswith("query 'large' would store about ")
    assert refused.value.what.endswith("; limit 100 kB")
    assert refused.value.hint
    assert session.engine.queries.named("large") is None
    session.create_query(pair(3), "small")


def test_what_would_cost_too_much_is_refused(bench: Bench) -> None:
    session = bench.open(max_query_cost_ms=1e-6)
    session.create_query(pair(2), "q")
    push_seconds(bench, session, 0, 4)
    with pytest.raises(LimitExceeded, match="ms of work a batch"):
        session.create_query(pair(3), "dear")


def test_an_assumed_selection_refuses_nobody(bench: Bench) -> None:
    session = bench.open(max_query_bytes=1_000)
    session.create_query(pair(2, " WHERE a.v < 2 AND b.v < 2"), "few")
    push_seconds(bench, session, 0, 4)
    estimate = session.engine.queries.estimate(pair(1000, " WHERE a.v = 7 AND b.v = 7"))
    assert estimate.added_bytes is not None
    assert estimate.added_bytes.origin is Origin.ASSUMED
    session.create_query(pair(1000, " WHERE a.v = 7 AND b.v = 7"), "narrow")


def test_for_ever_is_named_and_not_counted(bench: Bench) -> None:
    session = bench.open(max_query_bytes=1_000)
    push_seconds(bench, session, 0, 3)
    query = session.create_query("SELECT a.k FROM a JOIN b ON a.k = b.k", "growing")
    estimate = session.engine.queries.estimate_of(query.id)
    assert estimate is not None
    assert estimate.growing_streams == ("a", "b")
    assert "keeps a, b for ever" in str(estimate)


def test_after_a_restart_nobody_is_refused_for_what_others_keep(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(pair(100), "q")
    push_seconds(bench, session, 0, 4)
    session.close()
    again = bench.open(max_query_bytes=1_000)
    assert again.engine.queries.estimate_of(query.id) is None
    assert again.engine.queries.estimate(pair(100)).added_bytes is None


def test_the_record_goes_to_json(bench: Bench) -> None:
    session = bench.open()
    session.create_query(pair(2), "q")
    push_seconds(bench, session, 0, 4)
    record = json.loads(json.dumps(session.engine.queries.estimate(pair(9)).to_json()))
    assert record["growing_streams"] == []
    assert set(record["added_bytes"]) == {"value", "origin", "relative_error"}
