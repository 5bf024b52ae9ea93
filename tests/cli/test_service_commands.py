"""The commands that talk to a running service, against a real one over an in-process session."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from dovetail.cli.main import app
from dovetail.client.connection import Connection, write_connection
from dovetail.service.access.tokens import Role
from tests.support.running_service import (
    SEEN_SQL,
    RunningService,
    push_seen,
    running_service,
    views_and_clicks,
)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningService]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("DOVETAIL_URL", raising=False)
    monkeypatch.delenv("DOVETAIL_TOKEN", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    session = views_and_clicks(tmp_path / "checkpoint")
    try:
        with running_service(session, tmp_path / "service") as running:
            write_connection(Connection(running.url, running.token("tester", Role.ADMIN)))
            yield running
    finally:
        session.stop()


def run(*arguments: str, stdin: str | None = None, status: int = 0) -> Result:
    answer = CliRunner().invoke(app, list(arguments), input=stdin)
    assert answer.exit_code == status, answer.output
    assert "Traceback" not in answer.output
    return answer


@contextmanager
def pushed_once(condition: Callable[[], bool], service: RunningService, *batches: list[int]) -> Iterator[None]:
    """Batches of these users as soon as something is so, while a command waits for them."""

    def push() -> None:
        while not condition():
            time.sleep(0.02)
        for users in batches:
            push_seen(service.session, users)

    pushing = threading.Thread(target=push, daemon=True)
    pushing.start()
    yield
    pushing.join()


def somebody_listens(service: RunningService) -> Callable[[], bool]:
    headers = {"Authorization": f"Bearer {service.token('watcher', Role.READ)}"}

    def look() -> bool:
        return "\ndovetail_event_streams 1.0" in httpx.get(f"{service.url}/metrics", headers=headers).text

    return look


def test_a_query_from_its_creation_to_its_end(service: RunningService) -> None:
    assert "accepted" in run("query", "create", "seen", SEEN_SQL, "--option", "max_results_per_batch=50").stdout
    push_seen(service.session, [1, 2])
    shown = run("query", "show", "seen").stdout
    assert "seen is running, with 2 answers" in shown
    assert "max_results_per_batch=50" in shown
    assert SEEN_SQL in shown
    (head, line) = run("query", "list").stdout.splitlines()
    assert head.split()[:3] == ["query", "state", "answers"]
    assert line.split()[:3] == ["seen", "running", "2"]
    assert "how its answers are found" in run("query", "explain", "seen").stdout
    assert run("query", "results", "seen").stdout.splitlines()[0].split() == ["usr", "page"]
    assert "dropped" in run("query", "drop", "seen").stdout
    push_seen(service.session, [3])
    assert run("query", "list").stdout.splitlines()[1:] == []
    assert "dropped" in run("query", "list", "--all").stdout


def test_json_is_for_programs(service: RunningService) -> None:
    created = json.loads(run("query", "create", "seen", SEEN_SQL, "--json").stdout)
    assert (created["name"], created["state"], created["columns"][0]) == (
        "seen",
        "pending",
        {"name": "usr", "type": "bigint"},
    )
    push_seen(service.session, [7])
    assert json.loads(run("query", "show", "seen", "--json").stdout)["state"] == "running"
    assert [each["total_rows"] for each in json.loads(run("query", "list", "--json").stdout)] == [1]
    assert json.loads(run("query", "explain", "seen", "--json").stdout)["query"] == "seen"
    assert json.loads(run("query", "results", "seen", "--json").stdout) == {"usr": 7, "page": "home"}
    assert [each["name"] for each in json.loads(run("stream", "list", "--json").stdout)] == ["clicks", "views"]


@pytest.mark.parametrize("way", ["file", "stdin", "stdin file"])
def test_sql_comes_from_a_file_or_standard_input(service: RunningService, tmp_path: Path, way: str) -> None:
    (tmp_path / "seen.sql").write_text(SEEN_SQL)
    arguments = {"file": ["-f", str(tmp_path / "seen.sql")], "stdin": ["-"], "stdin file": ["-f", "-"]}[way]
    run("query", "create", "seen", *arguments, stdin=SEEN_SQL)
    assert service.session.engine.queries.records()[0].sql == SEEN_SQL


def test_waiting_returns_when_a_batch_has_the_change(service: RunningService) -> None:
    with pushed_once(lambda: bool(service.session.engine.queries.records()), service, [1]):
        assert "seen is running since batch 0" in run("query", "create", "seen", SEEN_SQL, "--wait").stdout


def test_replacing_needs_the_word(service: RunningService) -> None:
    other = SEEN_SQL.replace("V.usr, ", "")
    run("query", "create", "seen", SEEN_SQL)
    assert "seen" in run("query", "create", "seen", other, status=1).stderr
    run("query", "create", "seen", other, "--replace")
    push_seen(service.session, [1])
    assert json.loads(run("query", "show", "seen", "--json").stdout)["sql"] == other


def test_options_change(service: RunningService) -> None:
    run("query", "create", "seen", SEEN_SQL)
    push_seen(service.session, [1])
    run("query", "set", "seen", "max_results_per_batch=9", "keep_intermediates=false")
    push_seen(service.session, [1])
    options = json.loads(run("query", "show", "seen", "--json").stdout)["options"]
    assert (options["max_results_per_batch"], options["keep_intermediates"]) == (9, False)


def test_tail_shows_what_is_there_and_then_what_comes(service: RunningService) -> None:
    run("query", "create", "seen", SEEN_SQL)
    push_seen(service.session, [1, 2, 3])
    with pushed_once(somebody_listens(service), service, [4], [5]):
        answer = run("query", "tail", "seen", "--last", "2", "--limit", "4", "--json")
    users = [json.loads(line)["usr"] for line in answer.stdout.splitlines()]
    assert len(users) == 4
    assert users[2:] == [4, 5]
    lines = run("query", "tail", "seen", "--limit", "2").stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ["page", "home", "home"]


def test_answers_that_are_taken_back(service: RunningService) -> None:
    run("query", "create", "counted", "SELECT page, COUNT(*) AS n FROM views GROUP BY page")
    push_seen(service.session, [1, 2])
    with pushed_once(somebody_listens(service), service, [3]):
        answer = run("query", "tail", "counted", "--limit", "3", "--json")
    first, *changes = (json.loads(line) for line in answer.stdout.splitlines())
    assert first == {"page": "home", "n": 2, "_change": 1}
    assert sorted((row["n"], row["_change"]) for row in changes) == [(2, -1), (3, 1)]
    assert run("query", "results", "counted").stdout.split() == ["page", "n", "home", "3"]
    assert "no window lets them go: groups by views.page" in run("query", "show", "counted").stdout


def test_tail_ends_with_the_query(service: RunningService) -> None:
    run("query", "create", "seen", SEEN_SQL)
    push_seen(service.session, [1])
    run("query", "drop", "seen")
    push_seen(service.session, [2])
    answer = run("query", "tail", "seen", "--last", "0")
    assert (answer.stdout, answer.stderr) == ("", "the query was dropped\n")


def test_values_cannot_steer_the_terminal(service: RunningService) -> None:
    run("query", "create", "seen", SEEN_SQL)
    push_seen(service.session, [1], page="\x1b[2Jgone\nnext")
    printed = run("query", "results", "seen").stdout
    assert "\x1b" not in printed
    assert "\\x1b[2Jgone next" in printed


def test_streams_are_listed_with_their_columns(service: RunningService) -> None:
    assert service.url
    listed = run("stream", "list").stdout
    assert "usr bigint, page string, ts timestamp" in listed
    assert "2 seconds" in listed


def test_statements(service: RunningService) -> None:
    assert "accepted" in run("sql", f"CREATE CONTINUOUS QUERY seen AS {SEEN_SQL}").stdout
    push_seen(service.session, [1])
    assert "seen" in run("sql", "SHOW QUERIES").stdout
    assert "clicks" in run("sql", "SHOW STREAMS").stdout
    assert "query seen" in run("sql", "-", stdin="EXPLAIN seen").stdout
    assert json.loads(run("sql", "SHOW QUERIES", "--json").stdout)["kind"] == "show_queries"
    assert "nothing to drop" in run("sql", "DROP CONTINUOUS QUERY IF EXISTS other").stdout
    assert "dropped" in run("sql", "DROP CONTINUOUS QUERY seen").stdout


def test_top_shows_a_frame(service: RunningService) -> None:
    assert "no batch yet" in run("top", "--once").stdout
    for name in ("seen", "seen_too"):
        run("query", "create", name, SEEN_SQL)
    push_seen(service.session, [1, 2])
    lines = run("top", "--once", "--sort", "name").stdout.splitlines()
    assert "batch 0   2 queries" in lines[0]
    assert "sharing saves" in lines[1]
    assert [line.split()[:3] for line in lines if line.startswith("seen")] == [
        ["seen", "running", "50%"],
        ["seen_too", "running", "50%"],
    ]
    assert [line.split()[0] for line in lines if line.startswith(("views", "clicks"))] == ["views", "clicks"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["query", "create", "q", "SELECT nonsense"], "instead:"),
        (["query", "create", "q", SEEN_SQL.replace("V.page", "V.pages")], "line 1, column 15"),
        (["query", "create", "q"], "there is no SQL"),
        (["query", "create", "q", SEEN_SQL, "-o", "speed"], "KEY=VALUE"),
        (["query", "create", "q", SEEN_SQL, "-o", "speed=1"], "unknown option"),
        (["query", "create", "q", "-f", "/does/not/exist"], "cannot be read"),
        (["query", "create", "no name", SEEN_SQL], "cannot name a query"),
        (["query", "show", "nothing"], "no query 'nothing'"),
        (["query", "tail", "nothing"], "no query 'nothing'"),
        (["query", "drop", "nothing"], "no query 'nothing'"),
        (["sql", "DROP TABLE x"], "instead:"),
        (["query", "list", "--url", "nonsense"], "no address"),
    ],
)
def test_mistakes_end_with_a_message(service: RunningService, arguments: list[str], said: str) -> None:
    assert service.url
    assert said in run(*arguments, status=1).stderr


def test_no_service_says_how_to_start_one(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    assert service.url
    monkeypatch.setattr("dovetail.client.transport.PAUSES_S", ())
    said = " ".join(run("query", "list", "--url", "http://127.0.0.1:9", status=1).stderr.split())
    assert "no service answers at http://127.0.0.1:9" in said
    assert "dovetail serve CONFIG" in said


def test_a_wrong_token_says_so(service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    assert service.url
    monkeypatch.setenv("DOVETAIL_TOKEN", "wrong")
    assert "nobody knows this token" in run("query", "list", status=1).stderr
