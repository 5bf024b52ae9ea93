"""Statements do what their Python calls do, once per request, and say so in words and in rows."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from dovetail.core.errors import QueryError, QueryExists, SessionError, SqlError, UnsupportedSql
from dovetail.engine.control.query_options import QueryOptions
from dovetail.engine.control.registry import QueryState
from dovetail.engine.control.sink_spec import SinkSpec
from dovetail.engine.control.statement_result import StatementKind, StatementResult
from dovetail.engine.explain.explain import explain_preview, explain_query
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

RowsOf = Callable[[LocalSession, str], list[tuple[Any, ...]]]

Q1 = "SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS"
Q2 = "SELECT b.v FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS"
THREE = "SELECT a.v FROM a JOIN b ON a.k = b.k JOIN a c ON b.v = c.v WITHIN 5 SECONDS"


def test_a_query_is_created_replaced_and_dropped(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open()
    created = session.execute(f"CREATE CONTINUOUS QUERY q AS {Q1};")
    assert (created.kind, created.name, created.id) == (StatementKind.CREATE_QUERY, "q", "q#1")
    assert created.message == "query q accepted: in effect with the next batch"
    bench.push(session, a=[(1, 10, 0.0)], b=[(1, 20, 0.0)])
    assert rows_of(session, "q") == [(10, 20)]
    assert session.execute(f"CREATE CONTINUOUS QUERY q AS {Q1}").message == "query q is running since batch 0"
    replaced = session.execute(f"CREATE OR REPLACE CONTINUOUS QUERY q AS {Q2}")
    assert replaced.id != created.id
    bench.push(session, a=[(1, 11, 1.0)])
    dropped = session.execute("DROP CONTINUOUS QUERY q")
    assert dropped.message == "query q dropped: it ends with the next batch, its answers so far stay"
    assert rows_of(session, created.id) == [(10, 20)]
    assert rows_of(session, replaced.id) == [(20,)]


def test_the_stored_text_is_the_select_alone(bench: Bench) -> None:
    session = bench.open()
    result = session.execute(f"CREATE CONTINUOUS QUERY q\nAS\n  {Q1} ;")
    assert session.engine.queries.record(result.id).sql == Q1
    assert session.create_query(Q1, "q").id == result.id


def test_an_error_in_the_select_is_placed_in_the_statement(bench: Bench) -> None:
    session = bench.open()
    for start in ("CREATE CONTINUOUS QUERY q AS", "EXPLAIN"):
        with pytest.raises(UnsupportedSql) as caught:
            session.execute(f"{start}\n  SELECT a.v FROM a LEFT JOIN b ON a.k = b.k")
        assert caught.value.where == "line 2, column 31"
    assert session.engine.queries.records() == ()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.w FROM a JOIN b ON a.k = b.k",
        "SELECT a.v FROM a JOIN b ON a.k = b.k WITHIN 5 BANANAS",
        "SELECT a.v FROM a, b",
        "SELECT a.v + 'x' FROM a",
        "SELECT 'unterminated FROM a",
        "SELECT DATE '2020-13-01' FROM a",
        "SELECT COUNT(*) FROM a GROUP BY window(ts, 'x')",
    ],
)
def test_an_error_shows_no_other_that_led_to_it(bench: Bench, text: str) -> None:
    session = bench.open()
    for call in (
        lambda: session.create_query(text, "q"),
        lambda: session.execute(f"CREATE CONTINUOUS QUERY q AS {text}"),
        lambda: session.execute(f"EXPLAIN {text}"),
    ):
        with pytest.raises(SqlError) as caught:
            call()
        shown = "".join(traceback.format_exception(caught.value))
        assert shown.count("Traceback") == 1


def test_options_are_given_at_creation_and_changed_one_by_one(bench: Bench) -> None:
    session = bench.open()
    options = "max_results_per_batch = 5, sink = 'kafka', 'sink.topic' = 'alerts', sink.kafka.acks = 1"
    query = session.execute(f"CREATE CONTINUOUS QUERY q WITH ({options}) AS {Q1}").id
    sink = SinkSpec("kafka", {"topic": "alerts", "kafka.acks": "1"})
    assert session.engine.queries.record(query).options == QueryOptions(max_results_per_batch=5, sink=sink)
    altered = session.execute("ALTER CONTINUOUS QUERY q SET (max_results_per_batch = NULL, keep_intermediates = FALSE)")
    assert altered.message == "query q has new options: in effect with the next batch"
    assert session.engine.queries.record(query).options == QueryOptions(keep_intermediates=False, sink=sink)
    bench.push(session)
    again = session.execute("ALTER CONTINUOUS QUERY q SET (keep_intermediates = FALSE)")
    assert again.message == "query q has these options already"


def test_a_replacement_keeps_sink_and_options_that_it_does_not_name_and_says_so(bench: Bench) -> None:
    session = bench.open()
    session.execute(f"CREATE CONTINUOUS QUERY q WITH (max_results_per_batch = 5, sink = 'noop') AS {Q1}")
    bench.push(session)
    replaced = session.execute(f"CREATE OR REPLACE CONTINUOUS QUERY q WITH (max_pairs_per_batch = 7) AS {Q2}")
    assert replaced.message == (
        "query q accepted: in effect with the next batch; it takes the place of the query of this name, and keeps its "
        "max_results_per_batch, sink"
    )
    kept = QueryOptions(max_results_per_batch=5, max_pairs_per_batch=7, sink=SinkSpec("noop"))
    assert session.engine.queries.record(replaced.id).options == kept
    bench.push(session)
    bare = session.execute(
        f"CREATE OR REPLACE CONTINUOUS QUERY q WITH (sink = NULL, max_results_per_batch = NULL, "
        f"max_pairs_per_batch = NULL) AS {Q1}"
    )
    assert session.engine.queries.record(bare.id).options == QueryOptions()
    bench.push(session)
    again = session.execute(f"CREATE OR REPLACE CONTINUOUS QUERY q AS {Q2}")
    assert again.message.endswith("and it had no sink or options that would stay")


def test_a_replacement_of_equal_text_that_names_no_options_is_no_change(bench: Bench) -> None:
    session = bench.open()
    first = session.create_query(Q1, "q", max_results_per_batch=5)
    bench.push(session)
    assert session.create_query(Q1, "q", replace=True).id == first.id
    with pytest.raises(QueryExists, match="another options"):
        session.create_query(Q1, "q")


def test_a_retried_replacement_keeps_what_it_kept_at_first(bench: Bench) -> None:
    session = bench.open()
    session.create_query(Q1, "q", max_results_per_batch=5)
    first = session.create_query(Q2, "q", replace=True, request="r1")
    session.engine.queries.set_options(first.id, {"max_results_per_batch": 9})
    bench.push(session)
    session.create_query(Q1, "q", replace=True, request="r2")
    bench.push(session)
    assert session.create_query(Q2, "q", replace=True, request="r1").id == first.id
    with pytest.raises(QueryError, match="used before for another change"):
        session.create_query(Q2, "q", replace=True, request="r1", keep_intermediates=False)


@pytest.mark.parametrize("options", ["replace = TRUE", "name = 'x'", "sql = 'x'", "no.such = 1"])
def test_an_unknown_option_is_refused(bench: Bench, options: str) -> None:
    session = bench.open()
    with pytest.raises(QueryError, match="unknown option") as caught:
        session.execute(f"CREATE CONTINUOUS QUERY q WITH ({options}) AS {Q1}")
    assert "max_results_per_batch" in str(caught.value)


def test_a_retried_drop_does_not_touch_a_later_query_of_the_name(bench: Bench) -> None:
    session = bench.open()
    first = session.execute(f"CREATE CONTINUOUS QUERY q AS {Q1}", request="r1")
    session.execute("DROP CONTINUOUS QUERY q", request="r2")
    bench.push(session)
    second = session.execute(f"CREATE CONTINUOUS QUERY q AS {Q1}", request="r3")
    assert session.execute("DROP CONTINUOUS QUERY q", request="r2").id == first.id
    assert session.engine.queries.record(second.id).state is QueryState.PENDING


def test_a_retried_alter_changes_nothing_that_others_changed_since(bench: Bench) -> None:
    session = bench.open()
    query = session.execute(f"CREATE CONTINUOUS QUERY q AS {Q1}").id
    session.execute("ALTER CONTINUOUS QUERY q SET (max_results_per_batch = 5)", request="r1")
    session.execute(
        "ALTER CONTINUOUS QUERY q SET (keep_intermediates = FALSE, max_results_per_batch = 6)", request="r2"
    )
    retried = session.execute("ALTER CONTINUOUS QUERY q SET (max_results_per_batch = 5)", request="r1")
    assert retried.message == "query q had these options before, and others since"
    assert session.engine.queries.record(query).options == QueryOptions(False, 6)
    with pytest.raises(QueryError, match="used before for another change"):
        session.execute("ALTER CONTINUOUS QUERY q SET (max_results_per_batch = 7)", request="r1")


def test_a_name_that_no_query_has_is_refused_with_those_that_have_one(bench: Bench) -> None:
    session = bench.open()
    for number in range(12):
        session.execute(f"CREATE CONTINUOUS QUERY q{number:02d} AS {Q1}")
    for statement in ("DROP CONTINUOUS QUERY q", "ALTER CONTINUOUS QUERY q SET (backfill = TRUE)", "EXPLAIN q"):
        with pytest.raises(QueryError, match="no query 'q'") as caught:
            session.execute(statement)
        assert caught.value.hint.endswith("q08, q09 and 2 more (SHOW QUERIES)")
    assert session.execute("DROP CONTINUOUS QUERY IF EXISTS q").message == "no query q: nothing to drop"


def test_show_lists_live_queries_and_streams(bench: Bench) -> None:
    session = bench.open(lateness="2 seconds")
    assert repr(session.execute("SHOW QUERIES")) == "0 queries"
    session.execute(f"CREATE CONTINUOUS QUERY q AS {Q1}")
    session.execute(f"CREATE CONTINUOUS QUERY gone AS {Q1}")
    bench.push(session, a=[(1, 10, 0.0)], b=[(1, 20, 0.0)])
    session.execute("DROP CONTINUOUS QUERY gone")
    queries = session.execute("SHOW QUERIES")
    assert [(row["name"], row["state"], row["total_rows"]) for row in queries.rows] == [("q", "running", 1)]
    streams = session.execute("SHOW STREAMS")
    assert [row["name"] for row in streams.rows] == ["a", "b"]
    assert streams.rows[0]["columns"] == "k int, v int, ts timestamp"
    assert (streams.rows[0]["event_time"], streams.rows[0]["lateness_s"]) == ("ts", 2.0)
    assert json.loads(json.dumps(queries.to_json()))["rows"][0]["sql"] == Q1


def test_a_stream_needs_a_session_that_can_open_it(bench: Bench) -> None:
    with pytest.raises(SessionError, match="'s' has no source here"):
        bench.open().execute("CREATE STREAM s (x INT) WITH (format = 'rate')")


def test_explain_tells_of_a_query_now_or_after_its_end(bench: Bench) -> None:
    session = bench.open()
    query = session.execute(f"CREATE CONTINUOUS QUERY q AS {Q1}").id
    bench.push(session)
    explained = session.execute("EXPLAIN q")
    assert explained.text == explain_query(session.engine, query)
    assert repr(explained) == explained.text
    session.execute("DROP CONTINUOUS QUERY q")
    bench.push(session)
    assert session.execute("EXPLAIN q").text.startswith("query q is dropped")


def push_rows(bench: Bench, session: LocalSession, second: int) -> None:
    rows = [(number % 7, number % 3, second + number / 100) for number in range(40)]
    bench.push(session, a=rows, b=rows)


@pytest.mark.parametrize("in_background", [False, True])
def test_explain_select_is_what_explain_says_once_it_is_created(bench: Bench, in_background: bool) -> None:
    session = bench.open(plan_in_background=in_background)
    session.execute(f"CREATE CONTINUOUS QUERY q AS {Q1}")
    for second in range(3):
        push_rows(bench, session, second)
    for sql in (Q2, THREE):
        preview = explain_preview(session.engine, sql, "json")
        assert preview["state"] == "not created"
        session.execute(f"CREATE CONTINUOUS QUERY later AS {sql}")
        later = session.engine.queries.named("later").id
        created = explain_query(session.engine, later, "json")
        for part in ("paths", "stores", "cost", "intermediates"):
            said = json.dumps(preview[part]).replace("(this SELECT)", "later")
            assert said == json.dumps(created[part])
        assert preview["paths"][0]["steps"][0]["shared_with"] == ["q"]
        push_rows(bench, session, 3)
        assert session.engine.queries.record(later).complete_from == preview["complete_from"]
        session.execute("DROP CONTINUOUS QUERY later")
        push_rows(bench, session, 4)


def test_explain_select_leaves_no_trace(bench: Bench) -> None:
    session = bench.open()
    session.execute(f"CREATE CONTINUOUS QUERY q AS {Q1}")
    push_rows(bench, session, 0)
    push_rows(bench, session, 1)
    plans, queries = session.engine.plans, session.engine.queries
    before = plans.planned(), plans.changes, queries.records(), bench.files("changelog")
    text = session.execute(f"EXPLAIN {THREE}").text
    assert "query (this SELECT) is not created" in text
    assert (plans.planned(), plans.changes, queries.records(), bench.files("changelog")) == before
    with pytest.raises(SqlError, match="unknown stream"):
        session.execute("EXPLAIN SELECT a.x FROM a JOIN no_such ON a.k = no_such.k")


def test_a_result_is_readable_in_a_notebook_and_escapes_what_users_wrote() -> None:
    rows = ({"name": "q", "sql": "SELECT '<b>'"},)
    shown = StatementResult(StatementKind.SHOW_QUERIES, "1 query", rows=rows)
    assert repr(shown) == "name  sql\nq     SELECT '<b>'\n(1 query)"
    assert "&lt;b&gt;" in shown._repr_html_()
    explained = StatementResult(StatementKind.EXPLAIN, "how it runs", text="a < b")
    assert "<pre>a &lt; b</pre>" in explained._repr_html_()
    assert "dropped" in StatementResult(StatementKind.DROP_QUERY, "dropped")._repr_html_()
