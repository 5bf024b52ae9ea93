"""Answers that are taken back: pages show what is true, events what came and went."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

COUNT = "SELECT k, COUNT(*) AS n FROM a GROUP BY k"
ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


@pytest.fixture
def counted(world):
    """Counts by k: 1 and 1 after batch 0; 2, 1 and 1 after batch 1."""
    world.session.create_query(COUNT, "q")
    world.push(a=[(1, 0, 0), (2, 0, 0)])
    world.push(a=[(1, 0, 1), (3, 0, 1)])
    return world


def shown(page) -> list[tuple]:
    return sorted(tuple(row.values()) for row in page["rows"])


@pytest.mark.usefixtures("counted")
def test_a_page_shows_what_is_true_now(client):
    page = client.get("/v1/queries/q/results").json()
    assert [column["name"] for column in page["columns"]] == ["k", "n"]
    assert (shown(page), page["has_more"], page["committed_batch"]) == ([(1, 2), (2, 1), (3, 1)], False, 1)
    assert shown(client.get("/v1/queries/q/results?to_batch=0").json()) == [(1, 1), (2, 1)]
    assert len(shown(client.get("/v1/queries/q/results?last=2").json())) == 2
    table = pa.ipc.open_stream(client.get("/v1/queries/q/results", headers=ARROW).content).read_all()
    assert sorted(zip(*table.to_pydict().values(), strict=True)) == [(1, 2), (2, 1), (3, 1)]


def test_pages_go_on_in_the_answer_in_which_they_began(counted, client):
    first = client.get("/v1/queries/q/results?limit=2").json()
    assert first["has_more"]
    counted.push(a=[(1, 0, 2), (2, 0, 2), (3, 0, 2), (4, 0, 2)])
    second = client.get("/v1/queries/q/results", params={"cursor": first["next"]}).json()
    assert not second["has_more"]
    assert sorted(shown(first) + shown(second)) == [(1, 2), (2, 1), (3, 1)]
    assert shown(client.get("/v1/queries/q/results").json()) == [(1, 3), (2, 2), (3, 2), (4, 1)]


@pytest.mark.usefixtures("counted")
def test_changes_are_there_on_demand(client):
    page = client.get("/v1/queries/q/results?changes=true&from_batch=1").json()
    assert [column["name"] for column in page["columns"]] == ["k", "n", "_change"]
    assert shown(page) == [(1, 1, -1), (1, 2, 1), (3, 1, 1)]
    refused = client.get("/v1/queries/q/results?from_batch=1")
    assert refused.status_code == 400
    assert "changes=true" in refused.text


@pytest.mark.usefixtures("counted")
def test_the_view_names_the_change_column_and_what_grows(client):
    view = client.get("/v1/queries/q").json()
    assert (view["change_column"], view["growing_groups"]) == ("_change", ["groups by a.k"])
    assert [column["name"] for column in view["columns"]] == ["k", "n"]


@pytest.mark.usefixtures("counted")
def test_events_show_changes(client):
    with client.stream("GET", "/v1/queries/q/events?from_batch=1") as answer:
        lines = answer.iter_lines()
        data = next(json.loads(line[6:]) for line in lines if line.startswith("data: ") and '"batch":1' in line)
    assert sorted(tuple(row.values()) for row in data["rows"]) == [(1, 1, -1), (1, 2, 1), (3, 1, 1)]
