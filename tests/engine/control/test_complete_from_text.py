"""What `complete_from` means is said in words; the answers beside them show that it is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

KEPT = "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k WITHIN 100 SECONDS"


def came_later(bench: Bench, sql: str) -> tuple[str | None, list[tuple[Any, ...]]]:
    """A pair a batch in batches 0 to 3; the query begins with batch 2, beside one that kept rows since batch 1."""
    session = bench.open()
    for batch in range(2):
        push(bench, session, batch)
        if batch == 0:
            session.create_query(KEPT, "kept")
    query = session.create_query(sql, "q")
    assert session.engine.queries.status(query.id).complete_from_text is None
    for batch in range(2, 4):
        push(bench, session, batch)
    # Far ahead, so that windows close and rows without a partner are decided.
    bench.push(session, a=[(-1, -1, 10_000.0)], b=[(-2, -2, 10_000.0)])
    bench.push(session)
    return session.engine.queries.status(query.id).complete_from_text, sorted(
        tuple(row.values()) for row in session.results("q").to_pylist()
    )


def push(bench: Bench, session: LocalSession, batch: int) -> None:
    """A row of the key 7 and one without a partner on each side, ten seconds later than those of the batch before."""
    at = 10.0 * batch
    bench.push(session, a=[(7, batch, at), (50 + batch, batch, at)], b=[(7, batch, at)])


def test_a_join_answers_what_its_newest_row_completes(bench: Bench) -> None:
    text, answers = came_later(bench, KEPT.replace("a.v AS x", "a.v"))
    assert text == (
        "begins with batch 2: it answers joins whose newest row came in batch 2 or later, "
        "among rows of batch 1 or later"
    )
    assert answers == [(x, y) for x in (1, 2, 3) for y in (1, 2, 3) if max(x, y) >= 2]


def test_a_stream_alone_begins_with_its_first_batch(bench: Bench) -> None:
    text, answers = came_later(bench, "SELECT a.v FROM a WHERE a.k = 7")
    assert text == "begins with batch 2: it answers rows of batch 2 or later"
    assert answers == [(2,), (3,)]


def test_windows_that_begin_later_are_whole(bench: Bench) -> None:
    windowed = "SELECT window.start, COUNT(*) AS n FROM a WHERE k = 7 GROUP BY window(ts, '20 seconds')"
    text, answers = came_later(bench, windowed)
    assert text == (
        "begins with batch 2: windows that begin after the newest row from before batch 2 are whole, earlier ones "
        "count only rows of batch 2 or later"
    )
    assert [n for _, n in answers] == [2]


def test_groups_count_from_the_first_batch(bench: Bench) -> None:
    text, answers = came_later(bench, "SELECT a.k, COUNT(*) AS n FROM a WHERE k = 7 GROUP BY k")
    assert text == "begins with batch 2: groups count rows of batch 2 or later"
    assert answers == [(7, 2)]


def test_rows_without_a_partner_are_those_decided_later(bench: Bench) -> None:
    lone = "SELECT a.v FROM a LEFT ANTI JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"
    text, answers = came_later(bench, lone)
    assert text is not None
    assert text.startswith("begins with batch 2")
    assert ": it answers rows that turn out to have no partner in batch 2 or later, " in text
    assert {2, 3} <= {value for (value,) in answers}


def test_a_query_from_the_start_answers_everything(bench: Bench) -> None:
    session = bench.open()
    texts = {
        KEPT: "complete: it answers what batch SQL finds in all rows since the first batch",
        "SELECT k, COUNT(*) AS n FROM a GROUP BY k": "complete: groups count all rows since the first batch",
        "SELECT window.start, COUNT(*) AS n FROM a GROUP BY window(ts, '20 seconds')": (
            "complete: each window counts all its rows since the first batch"
        ),
    }
    queries = {sql: session.create_query(sql, f"q{number}") for number, sql in enumerate(texts)}
    push(bench, session, 0)
    assert {sql: session.engine.queries.status(query.id).complete_from_text for sql, query in queries.items()} == texts
    session.drop_query("q0")
    push(bench, session, 1)
    assert session.engine.queries.status(queries[KEPT].id).complete_from_text == texts[KEPT]


@pytest.mark.parametrize("state", ["running", "dropped"])
def test_explain_says_it(bench: Bench, state: str) -> None:
    session = bench.open()
    push(bench, session, 0)
    session.create_query("SELECT k, COUNT(*) AS n FROM a GROUP BY k", "q")
    push(bench, session, 1)
    if state == "dropped":
        session.drop_query("q")
        push(bench, session, 2)
    lines = session.execute("EXPLAIN q").text.splitlines()
    assert lines[1].strip("├─└ ") == "begins with batch 1: groups count rows of batch 1 or later"
