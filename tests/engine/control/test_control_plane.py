"""Changes of queries: accepted once, in effect once, whatever clients and crashes do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from dovetail.core.errors import QueryError
from dovetail.engine.control.query_options import QueryOptions
from dovetail.engine.control.registry import QueryState
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

RowsOf = Callable[[LocalSession, str], list[tuple[Any, ...]]]

Q1 = "SELECT a.v, b.v FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS"
Q2 = "SELECT b.v FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS"


def test_a_replacement_drops_and_creates_at_one_batch_edge(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open()
    old = session.create_query(Q1, "q")
    bench.push(session, a=[(1, 10, 0.0)], b=[(1, 20, 0.0)])
    new = session.create_query(Q2, "q", replace=True)
    assert (old.status.state, new.status.state) == (QueryState.DROPPED, QueryState.PENDING)
    bench.push(session, a=[(1, 11, 1.0)])
    assert old.status.dropped_batch == new.status.created_batch == 1
    assert rows_of(session, "q") == [(20,)]
    assert session.engine.queries.named("q").id == new.id


def test_without_replace_another_text_is_refused_with_the_way_out(bench: Bench) -> None:
    session = bench.open()
    session.create_query(Q1, "q")
    with pytest.raises(QueryError, match="another text") as caught:
        session.create_query(Q2, "q")
    assert "OR REPLACE" in str(caught.value)


def test_a_retry_finds_the_query_even_after_it_was_dropped_and_the_engine_restarted(bench: Bench) -> None:
    session = bench.open()
    first = session.create_query(Q1, "q", request="r1")
    bench.push(session)
    session.drop_query("q")
    bench.push(session)
    session.close()
    again = bench.open()
    retried = again.create_query(Q1, "q", request="r1")
    assert retried.id == first.id
    assert retried.status.state is QueryState.DROPPED
    assert again.create_query(Q1, "q", request="r2").id != first.id


def test_options_change_with_a_batch_and_say_with_which(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(Q1, "q")
    bench.push(session)
    limited = QueryOptions(max_results_per_batch=5)
    session.engine.queries.set_options(query.id, {"max_results_per_batch": 5})
    assert query.status.options == limited
    assert query.status.changed_batch is None
    bench.push(session)
    assert (query.status.changed_batch, query.status.options) == (1, limited)
    session.drop_query("q")
    bench.push(session)
    with pytest.raises(QueryError, match="is dropped"):
        session.engine.queries.set_options(query.id, {"max_results_per_batch": None})


def test_waiting_for_effect_ends_with_the_batch(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(Q1, "q")
    assert session.engine.queries.await_effect(query.id, 0.01).state is QueryState.PENDING
    seen = []
    waiting = threading.Thread(target=lambda: seen.append(session.engine.queries.await_effect(query.id, 60.0)))
    waiting.start()
    bench.push(session)
    waiting.join(60.0)
    assert [record.state for record in seen] == [QueryState.RUNNING]
    assert session.engine.answers.await_batch(0, 0.0)
    assert not session.engine.answers.await_batch(1, 0.01)


def test_listeners_hear_of_every_commit_and_cannot_break_it(bench: Bench) -> None:
    session = bench.open()
    session.create_query(Q1, "q")
    heard = []

    def broken(_news: object) -> None:
        raise ValueError("broken")

    session.engine.answers.listen(broken)
    end = session.engine.answers.listen(
        lambda news: heard.append((news.batch, sum(file.rows for file in news.results)))
    )
    bench.push(session, a=[(1, 10, 0.0)], b=[(1, 20, 0.0)])
    end()
    bench.push(session)
    assert heard == [(0, 1)]
    assert session.engine.head.batch == 1
