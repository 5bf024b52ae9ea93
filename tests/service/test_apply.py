"""The file of a running service: applied again on demand, and what cannot be used is shown."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from dovetail.core.errors import UnknownName
from dovetail.service import query_desk
from dovetail.service.access.owners import Owners
from dovetail.service.access.refusals import NotYet
from dovetail.service.access.tokens import Caller, Role, TokenFile
from dovetail.service.app import make_app
from dovetail.service.config.config import load_config
from dovetail.service.config.options import ServiceOptions
from dovetail.service.desired_state import DesiredState
from dovetail.service.query_desk import QueryDesk, QueryDraft
from dovetail.service.server import Server
from tests.support.served_local import ServedLocalSession

FILE = """\
checkpoint_dir: ./checkpoint
streams:
  a: {format: rate, event_time: timestamp}
queries:
  right: {sql: SELECT value FROM a}
  wrong:
    sql: SELECT valu FROM a
"""


@pytest.fixture
def served(tmp_path: Path):
    """A client for a role."""
    file = tmp_path / "serve.yaml"
    file.write_text(FILE)
    session = ServedLocalSession(tmp_path / "checkpoint")
    desired = DesiredState(load_config(file))
    desired.apply(session)
    options = ServiceOptions(tmp_path / "service", port=0)
    tokens = {role: TokenFile(options.tokens_file).create(role.value, role) for role in Role}
    clients = []
    with Server(make_app(session, options, desired), options) as server:

        def client(role: Role = Role.ADMIN) -> httpx.Client:
            headers = {"Authorization": f"Bearer {tokens[role]}"}
            clients.append(httpx.Client(base_url=server.url, headers=headers, timeout=60))
            return clients[-1]

        client.file = file
        yield client
        for each in clients:
            each.close()
    session.stop()


def test_a_query_that_does_not_compile_is_shown_as_failed_with_its_line(served):
    client = served(Role.READ)
    listed = {query["name"]: query for query in client.get("/v1/queries").json()["queries"]}
    assert {name: query["state"] for name, query in listed.items()} == {"right": "pending", "wrong": "failed"}
    assert listed["wrong"]["error"].startswith("line 7, query wrong: cannot be used: ")
    assert client.get("/v1/queries/wrong").json() == listed["wrong"]
    assert [query["name"] for query in client.get("/v1/queries?state=failed").json()["queries"]] == ["wrong"]
    (failure,) = client.get("/v1/status").json()["file_failures"]
    assert (failure["kind"], failure["name"], failure["line"], failure["step"]) == ("query", "wrong", 7, "fail")
    shown = served(Role.READ).post("/v1/statements", json={"statement": "SHOW QUERIES"}).json()["queries"]
    assert [query["state"] for query in shown] == ["pending", "failed"]


def test_a_changed_file_is_applied_by_an_admin(served):
    served.file.write_text(FILE.replace("valu ", "value "))
    assert served(Role.WRITE).post("/v1/apply").status_code == 403
    answer = served().post("/v1/apply")
    assert [(change["name"], change["step"]) for change in answer.json()["changes"]] == [("wrong", "create")]
    assert served().get("/v1/queries/wrong").json()["state"] == "pending"
    assert served().post("/v1/apply").json() == {"changes": []}


def test_a_file_that_cannot_be_read_changes_nothing(served):
    served.file.write_text(FILE.replace("queries:", "quries:"))
    answer = served().post("/v1/apply")
    assert (answer.status_code, "did you mean queries" in answer.text) == (422, True)
    assert served().get("/v1/queries/right").json()["state"] == "pending"


def test_somebody_may_create_what_the_file_could_not(served):
    assert served().put("/v1/queries/wrong", json={"sql": "SELECT value FROM a"}).status_code == 202
    listed = served().get("/v1/queries").json()["queries"]
    assert {query["name"]: query["state"] for query in listed} == {"right": "pending", "wrong": "pending"}
    assert served().get("/v1/status").json()["file_failures"] == []


def test_a_service_without_a_file_has_nothing_to_apply(world):
    assert world.client().post("/v1/apply").status_code == 404


def test_a_query_that_comes_before_the_streams_of_the_file_waits_for_them(tmp_path):
    file = tmp_path / "serve.yaml"
    file.write_text(FILE)
    session = ServedLocalSession(tmp_path / "checkpoint")
    desired = DesiredState(load_config(file))
    options = ServiceOptions(tmp_path / "service", port=0)
    desk = QueryDesk(session, Owners(options.owners_file), options, desired)
    admin = Caller("admin", Role.ADMIN)
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(desk.create, admin, QueryDraft("SELECT value FROM a", "early"), "")
        with pytest.raises(TimeoutError):
            early.result(0.2)
        desired.apply(session)
        assert early.result(60).name == "early"
    with pytest.raises(UnknownName):
        desk.create(admin, QueryDraft("SELECT value FROM no_such", "late"), "")
    session.stop()


def test_streams_of_the_file_that_do_not_come_in_time_are_asked_for_again(tmp_path, monkeypatch):
    monkeypatch.setattr(query_desk, "FILE_PATIENCE_S", 0.0)
    file = tmp_path / "serve.yaml"
    file.write_text(FILE)
    session = ServedLocalSession(tmp_path / "checkpoint")
    options = ServiceOptions(tmp_path / "service", port=0)
    desk = QueryDesk(session, Owners(options.owners_file), options, DesiredState(load_config(file)))
    with pytest.raises(NotYet) as refused:
        desk.create(Caller("admin", Role.ADMIN), QueryDraft("SELECT value FROM a", "early"), "")
    assert refused.value.retry_after_s
    session.stop()
