"""The client against a real service over an in-process session."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from dovetail.client import Client
from dovetail.client.errors import AccessDenied, LimitReached
from dovetail.core.errors import QueryError, SqlError, UnknownName
from dovetail.service.access.tokens import Role
from dovetail.service.answers.pages import AnswerReader, Page
from tests.support.running_service import SEEN_SQL, RunningService, push_seen, running_service, views_and_clicks
from tests.support.served_local import ServedLocalSession

WITH_UNKNOWN_COLUMN = SEEN_SQL.replace("V.page", "V.pages")


def test_a_query_from_its_creation_to_its_end(client: Client, service: RunningService) -> None:
    query = client.create_query(SEEN_SQL, "seen", max_results_per_batch=100)
    assert (query.status.state, query.status.in_effect, query.status.owner) == ("pending", False, "tester")
    assert query.status.options["max_results_per_batch"] == 100
    push_seen(service.session, [1, 2, 3])
    assert query.await_effect(10).state == "running"
    assert sorted(query.to_arrow().column("usr").to_pylist()) == [1, 2, 3]
    assert query.to_pandas().columns.tolist() == ["usr", "page"]
    assert query.rows(last=1).rows[0]["page"] == "home"
    assert "query seen runs" in query.explain()
    assert query.explain("json")["query"] == "seen"
    dropped = query.drop()
    push_seen(service.session, [4])
    assert (dropped.state, query.await_effect(10).state, query.status.total_rows) == ("dropped", "dropped", 3)
    assert [each.name for each in client.queries] == []
    assert [each.name for each in client.statuses(include_dropped=True)] == ["seen"]


def test_replacing_and_changing_options(client: Client, service: RunningService) -> None:
    query = client.create_query(SEEN_SQL, "seen")
    push_seen(service.session, [1])
    first = query.status
    assert query.set_options(max_results_per_batch=7).options["max_results_per_batch"] == 7
    replaced = client.create_query(SEEN_SQL.replace("V.usr, V.page", "V.page"), "seen", replace=True).status
    push_seen(service.session, [1])
    assert first.id != replaced.id == query.status.id
    assert query.to_arrow().column_names == ["page"]


def test_waiting_for_effect_and_for_answers_ends_with_the_time(client: Client, service: RunningService) -> None:
    query = client.create_query(SEEN_SQL, "seen")
    assert not query.await_effect(0.0).in_effect
    assert not query.await_results(timeout=0.0)
    push_seen(service.session, [1, 2])
    assert query.await_results(2, timeout=0.0)
    assert query.is_active
    query.drop()
    push_seen(service.session, [3])
    assert not query.await_results(3)
    assert not query.is_active


def test_a_query_that_fails_alone_says_so_everywhere(client: Client, service: RunningService) -> None:
    query = client.create_query("SELECT 1 / (V.usr - 3) AS x FROM views V", "failing")
    healthy = client.create_query(SEEN_SQL, "seen")
    tail = query.tail()
    push_seen(service.session, [1, 2])
    assert query.exception is None
    push_seen(service.session, [3])
    exception = query.exception
    assert exception is not None
    assert "'failing' is stopped since batch 1: " in str(exception)
    rows: list[dict[str, object]] = []
    with pytest.raises(QueryError, match="'failing' is stopped since batch 1"):
        rows.extend(tail)
    assert sorted(row["x"] for row in rows) == [-1.0, -0.5]
    with pytest.raises(QueryError, match="is stopped"):
        query.await_results(100)
    assert (query.is_active, healthy.is_active) == (False, True)


def test_a_statement_answers_with_a_record(client: Client, service: RunningService) -> None:
    created = client.execute(f"CREATE CONTINUOUS QUERY seen AS {SEEN_SQL}")
    assert (created.kind, created.name, created.id) == ("create query", "seen", client.query("seen").status.id)
    assert created.message == "query seen accepted: in effect with the next batch"
    push_seen(service.session, [1])
    assert [row["name"] for row in client.execute("SHOW QUERIES").rows] == ["seen"]
    assert "query seen" in client.execute("EXPLAIN seen").text


def test_streams_plan_progress_and_validation(client: Client, service: RunningService) -> None:
    assert client.progress is None
    client.create_query(SEEN_SQL, "seen")
    push_seen(service.session, [1, 2])
    progress = client.progress
    assert progress is not None
    assert progress["numInputRows"] == 4
    assert {stream.name: stream.lateness for stream in client.streams} == {
        "views": "0 seconds",
        "clicks": "2 seconds",
    }
    assert "1 query in one plan" in client.explain()
    assert client.explain("json")["queries"] == ["seen"]
    assert [column.type for column in client.validate(SEEN_SQL).columns] == ["bigint", "string"]


def test_results_longer_than_a_page(client: Client, service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    query = client.create_query(SEEN_SQL, "seen")
    for batch in range(3):
        push_seen(service.session, range(10 * batch, 10 * batch + 10))
    expected = list(range(30))
    monkeypatch.setattr("dovetail.client.results.JSON_ROWS", 7)
    assert sorted(row["usr"] for row in query.rows().rows) == expected
    monkeypatch.setattr("dovetail.service.answers.pages.AnswerReader.page", _pages_of(7))
    assert sorted(query.to_arrow().column("usr").to_pylist()) == expected
    assert query.to_arrow(last=4).num_rows == 4


def _pages_of(rows: int) -> Callable[..., Page]:
    whole = AnswerReader.page
    return lambda self, start, limit, to_batch=None: whole(self, start, min(limit, rows), to_batch)


class BatchAfterEachPage(httpx.HTTPTransport):
    """Only so many, so that a client that follows them ends, too."""

    def __init__(self, session: ServedLocalSession) -> None:
        super().__init__()
        self.session = session
        self.left = 8

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        if request.url.path.endswith("/results") and self.left > 0:
            self.left -= 1
            push_seen(self.session, range(100, 110))
        return answer


def test_a_result_is_what_was_committed_when_it_was_asked_for(
    client: Client, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create_query(SEEN_SQL, "seen")
    push_seen(service.session, range(20))
    token = service.token("slow", Role.READ)
    query = Client(service.url, token, transport=BatchAfterEachPage(service.session)).query("seen")
    monkeypatch.setattr("dovetail.client.results.JSON_ROWS", 7)
    assert len(query.rows().rows) == 20
    monkeypatch.setattr("dovetail.service.answers.pages.AnswerReader.page", _pages_of(7))
    committed = query.status.total_rows
    assert query.to_arrow().num_rows == committed


def test_answers_that_are_taken_back(client: Client, service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.client.results.JSON_ROWS", 2)
    monkeypatch.setattr("dovetail.client.tail.EVENT_ROWS", 1)
    handle = client.create_query("SELECT usr, COUNT(*) AS n FROM views GROUP BY usr", "counted")
    push_seen(service.session, [1, 2, 3])
    push_seen(service.session, [1, 2, 4])
    assert (handle.status.change_column, handle.status.growing_groups) == ("_change", ("groups by views.usr",))
    counts = {1: 2, 2: 2, 3: 1, 4: 1}
    table = handle.to_arrow().to_pydict()
    assert dict(zip(table["usr"], table["n"], strict=True)) == counts
    assert {row["usr"]: row["n"] for row in handle.rows().rows} == counts
    changes = next(batch for batch in handle.tail(from_batch=1).batches())
    assert sorted((row["usr"], row["n"], row["_change"]) for row in changes.rows) == [
        (1, 1, -1),
        (1, 2, 1),
        (2, 1, -1),
        (2, 2, 1),
        (4, 1, 1),
    ]


def test_an_empty_result_has_its_columns(client: Client) -> None:
    query = client.create_query(SEEN_SQL, "seen")
    assert query.to_arrow().column_names == ["usr", "page"]
    assert query.rows().columns == ("usr", "page")


def test_mistakes_are_raised_as_in_a_session(client: Client) -> None:
    with pytest.raises(UnknownName, match="pages") as unknown:
        client.create_query(WITH_UNKNOWN_COLUMN, "bad")
    assert unknown.value.where == "line 1, column 15"
    with pytest.raises(SqlError):
        client.validate("SELECT")
    with pytest.raises(QueryError, match="nothing"):
        client.query("nothing")
    client.create_query(SEEN_SQL, "seen")
    with pytest.raises(QueryError):
        client.create_query(SEEN_SQL.replace("V.page", "C.ts"), "seen")
    with pytest.raises(QueryError, match="unknown option"):
        client.create_query(SEEN_SQL, "other", speed="fast")


def test_a_token_without_the_role_is_refused(service: RunningService) -> None:
    with pytest.raises(AccessDenied):
        Client(service.url).statuses()
    with pytest.raises(AccessDenied):
        Client(service.url, "wrong").statuses()
    reader = Client(service.url, service.token("reader", Role.READ))
    assert reader.queries == []
    with pytest.raises(AccessDenied, match="write"):
        reader.create_query(SEEN_SQL, "seen")


def test_a_statement_longer_than_allowed_is_refused(client: Client) -> None:
    with pytest.raises(LimitReached):
        client.create_query(SEEN_SQL + " " * 200_000, "long")


class LostAnswers(httpx.HTTPTransport):
    """The service hears every request; the first answers never arrive."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        if request.method != "GET" and self.count > 0:
            self.count -= 1
            answer.close()
            raise httpx.ReadError("connection reset")
        return answer


def test_a_change_whose_answer_was_lost_is_made_once(service: RunningService) -> None:
    token = service.token("unlucky", Role.WRITE)
    query = Client(service.url, token, transport=LostAnswers(2)).create_query(SEEN_SQL, "seen")
    unnamed = Client(service.url, token, transport=LostAnswers(1)).create_query(SEEN_SQL)
    names = [each.name for each in Client(service.url, token).queries]
    assert names == ["seen", unnamed.name]
    Client(service.url, token, transport=LostAnswers(1)).query("seen").drop()
    assert query.status.state == "dropped"


def test_a_tail_lives_through_restarts_of_the_service(tmp_path: Path) -> None:
    session = views_and_clicks(tmp_path / "checkpoint")
    heard: list[int] = []
    with running_service(session, tmp_path / "service") as first:
        client = Client(first.url, first.token("follower", Role.WRITE))
        tail = client.create_query(SEEN_SQL, "seen").tail(patience_s=30)
        follower = threading.Thread(target=lambda: heard.extend(row["usr"] for row in tail), daemon=True)
        follower.start()
        push_seen(session, [1])
    push_seen(session, [2])
    port = int(first.url.rpartition(":")[2])
    with running_service(session, tmp_path / "service", port=port):
        push_seen(session, [3])
    push_seen(session, [4])
    with running_service(session, tmp_path / "service", port=port):
        client.query("seen").drop()
        push_seen(session, [5])
        follower.join(20)
    session.stop()
    assert (heard, tail.end_reason) == ([1, 2, 3, 4], "dropped")


def test_handles_show_themselves(client: Client, service: RunningService) -> None:
    query = client.create_query(SEEN_SQL.replace("10 SECONDS", "10 SECONDS -- <b>"), "seen")
    push_seen(service.session, [1])
    assert repr(query) == f"Query('seen', {service.url})"
    assert "&lt;b&gt;" in query._repr_html_()
    assert "<b>Query seen</b>" in query._repr_html_()
    assert "<td>running</td>" in client._repr_html_()
    assert "tester" not in repr(client)


def test_importing_the_client_loads_neither_arrow_nor_pandas_nor_spark() -> None:
    check = (
        "import sys, dovetail.client; print({'pyarrow', 'pandas', 'pyspark', 'fastapi', 'sqlglot'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
