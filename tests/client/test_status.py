"""The session, SHOW QUERIES, REST and the client say the same of a query, in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from datetime import timedelta
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from dovetail.client import Client
from dovetail.client.records import QueryStatus as ClientStatus
from dovetail.engine.backfill.record import BackfillStatus
from dovetail.engine.control.query_status import QueryStatus
from dovetail.service.access.tokens import Role
from dovetail.service.schemas import QueryView
from tests.support.running_service import CLICKS, MOMENT, SEEN_SQL, VIEWS, RunningService, running_service
from tests.support.served_local import ServedLocalSession


def push(session: ServedLocalSession, user: int, seconds: int) -> None:
    now = [MOMENT + timedelta(seconds=seconds)]
    views = pa.table({"usr": [user], "page": ["home"], "ts": now}, schema=VIEWS)
    session.push({"views": views, "clicks": pa.table({"usr": [user], "ts": now}, schema=CLICKS)})


@pytest.fixture
def backfilled(tmp_path: Path) -> Iterator[RunningService]:
    """Two batches, then a query with a backfill, which is done."""
    session = ServedLocalSession(tmp_path / "checkpoint")
    session.local.create_stream("views", VIEWS, event_time="ts")
    session.local.create_stream("clicks", CLICKS, event_time="ts")
    push(session, 1, 0)
    push(session, 2, 1)
    session.create_query(SEEN_SQL, "seen", backfill=True)
    push(session, 3, 1000)
    while session.local.backfills.step(2):
        pass
    push(session, 4, 1001)
    try:
        with running_service(session, tmp_path / "service") as running:
            yield running
    finally:
        session.stop()


def test_all_surfaces_say_the_same_after_a_backfill(backfilled: RunningService) -> None:
    local = backfilled.session.local
    (record,) = local.engine.queries.records()
    status = local.engine.queries.status(record.id)
    assert (record.complete_from, status.complete_from) == (2, 0)
    assert status.backfill == BackfillStatus("done", 3, 3, 2, None)
    (shown,) = local.execute("SHOW QUERIES").rows
    said = asdict(status)
    assert shown == {name: said[name] for name in shown}
    token = backfilled.token("tester", Role.ADMIN)
    answer = httpx.get(f"{backfilled.url}/v1/queries/seen", headers={"Authorization": f"Bearer {token}"}).json()
    as_json = {name: list(each) if isinstance(each, tuple) else each for name, each in said.items()}
    assert {name: answer[name] for name in said} == as_json
    with Client(backfilled.url, token) as client:
        of_client = asdict(client.query("seen").status)
    assert {name: of_client[name] for name in said} == said


def test_every_field_of_a_status_goes_over_the_wire() -> None:
    names = {entry.name for entry in fields(QueryStatus)}
    assert names <= QueryView.model_fields.keys()
    assert QueryView.model_fields.keys() == {entry.name for entry in fields(ClientStatus)}


def test_queries_are_shown_before_their_streams_are_there_again(tmp_path: Path) -> None:
    session = ServedLocalSession(tmp_path)
    session.local.create_stream("views", VIEWS, event_time="ts")
    session.create_query("SELECT usr FROM views", "all")
    session.stop()
    again = ServedLocalSession(tmp_path)
    (row,) = again.local.execute("SHOW QUERIES").rows
    again.stop()
    assert (row["name"], row["state"]) == ("all", "pending")
