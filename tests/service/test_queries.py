"""Queries through REST: created, listed, changed, replaced, dropped."""

from __future__ import annotations

import threading
import time

import pytest


def create(client, sql, name="q", **more):
    return client.post("/v1/queries", json={"sql": sql, "name": name, **more})


def test_a_create_is_accepted_and_then_in_effect_with_its_batch(world, client, join):
    answer = create(client, join)
    assert answer.status_code == 202
    query = answer.json()
    assert (query["state"], query["in_effect"], query["created_batch"], query["owner"]) == (
        "pending",
        False,
        None,
        "admin",
    )
    assert query["reads"] == {"a": ["k", "v"], "b": ["k", "v"]}
    assert query["estimate"]["share_ms"]["value"] >= 0
    assert query["columns"][1] == {"name": "av", "type": "int"}
    world.push()
    query = client.get("/v1/queries/q").json()
    assert (query["state"], query["in_effect"], query["created_batch"]) == ("running", True, 0)


def test_waiting_answers_with_the_batch(world, client, join):
    def push_once_it_is_accepted():
        while world.session.engine.queries.named("q") is None:
            time.sleep(0.01)
        world.push()

    threading.Thread(target=push_once_it_is_accepted, daemon=True).start()
    answer = client.post("/v1/queries?wait=30", json={"sql": join, "name": "q"})
    assert (answer.status_code, answer.json()["created_batch"]) == (201, 0)


def test_waiting_ends_when_the_time_is_up(client, join):
    answer = client.post("/v1/queries?wait=0.1", json={"sql": join, "name": "q"})
    assert (answer.status_code, answer.json()["state"]) == (202, "pending")


def test_the_same_key_is_the_same_query_once(client, join):
    headers = {"Idempotency-Key": "one"}
    first = client.post("/v1/queries", json={"sql": join}, headers=headers).json()
    second = client.post("/v1/queries", json={"sql": join}, headers=headers).json()
    assert first["id"] == second["id"]
    assert len(client.get("/v1/queries").json()["queries"]) == 1
    other = client.post("/v1/queries", json={"sql": join + " ", "name": first["name"]}, headers=headers)
    assert (other.status_code, other.json()["error"]["type"]) == (409, "RequestReused")


def test_keys_belong_to_their_token(world, client, join):
    writer = world.client(list(world.token_by_role)[1])
    headers = {"Idempotency-Key": "one"}
    mine = client.post("/v1/queries", json={"sql": join}, headers=headers).json()
    theirs = writer.post("/v1/queries", json={"sql": join}, headers=headers).json()
    assert mine["id"] != theirs["id"]


def test_a_taken_name_is_a_conflict_and_the_same_text_is_none(client, join):
    create(client, join)
    assert create(client, join).status_code == 202
    refused = create(client, join.replace("10", "9"))
    assert (refused.status_code, refused.json()["error"]["type"]) == (409, "QueryExists")
    assert create(client, join.replace("10", "9"), replace=True).status_code == 202


def test_put_replaces_at_one_edge(world, client, join):
    create(client, join)
    world.push()
    answer = client.put("/v1/queries/q", json={"sql": join.replace("10", "9")})
    assert answer.status_code == 202
    world.push()
    listed = client.get("/v1/queries?include_dropped=true").json()["queries"]
    assert [(query["state"], query["created_batch"], query["dropped_batch"]) for query in listed] == [
        ("dropped", 0, 1),
        ("running", 1, None),
    ]


def test_options_change_and_stay(world, client, join):
    create(client, join, options={"max_results_per_batch": 7})
    answer = client.patch("/v1/queries/q", json={"options": {"keep_intermediates": False}})
    assert answer.status_code == 202
    options = answer.json()["options"]
    assert (options["max_results_per_batch"], options["keep_intermediates"]) == (7, False)
    world.push()
    assert client.patch("/v1/queries/q", json={"options": {"keep_intermediates": False}}).status_code == 200


@pytest.mark.parametrize("options", [{"nonsense": 1}, {"max_results_per_batch": 0}, {"sink": 5}, {"sink.topic": "x"}])
def test_options_that_are_none_are_refused(client, join, options):
    assert create(client, join, options=options).status_code == 422
    assert client.get("/v1/queries").json()["queries"] == []


def test_a_drop_takes_effect_once_and_leaves_the_answers(world, client, join):
    create(client, join)
    world.push(a=[(1, 1, 0)], b=[(1, 2, 0)])
    dropped = client.delete("/v1/queries/q")
    assert (dropped.status_code, dropped.json()["state"], dropped.json()["in_effect"]) == (202, "dropped", False)
    world.push()
    again = client.delete("/v1/queries/q")
    assert (again.status_code, again.json()["dropped_batch"]) == (200, 1)
    assert client.get("/v1/queries/q/results").json()["rows"] == [{"k": 1, "av": 1, "bv": 2}]
    assert client.get("/v1/queries").json()["queries"] == []
    assert client.patch("/v1/queries/q", json={"options": {"backfill": False}}).status_code in (200, 409)


def test_a_repeated_drop_does_not_drop_a_successor(world, client, join):
    create(client, join)
    headers = {"Idempotency-Key": "drop-it"}
    client.delete("/v1/queries/q", headers=headers)
    world.push()
    create(client, join)
    client.delete("/v1/queries/q", headers=headers)
    world.push()
    assert client.get("/v1/queries/q").json()["state"] == "running"


def test_unknown_queries_are_404(client):
    for answer in (
        client.get("/v1/queries/x"),
        client.delete("/v1/queries/x"),
        client.patch("/v1/queries/x", json={"options": {}}),
        client.get("/v1/queries/x/results"),
        client.get("/v1/queries/x/events"),
        client.get("/v1/queries/x/explain"),
    ):
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "UnknownQuery")


def test_sql_errors_say_what_and_where(client):
    answer = create(client, "SELECT a.nope FROM a JOIN b ON a.k = b.k")
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert (error["type"], error["where"]) == ("UnknownName", "line 1, column 8")
    assert error["hint"]


def test_lists_come_in_pages(client, join):
    for number in range(5):
        create(client, join, f"q{number}")
    first = client.get("/v1/queries?limit=2").json()
    second = client.get("/v1/queries", params={"limit": 3, "after": first["next"]}).json()
    names = [query["name"] for page in (first, second) for query in page["queries"]]
    assert (names, second["next"]) == ([f"q{number}" for number in range(5)], None)
    assert client.get("/v1/queries?state=running").json()["queries"] == []


def test_explain_as_text_and_json(world, client, join):
    create(client, join)
    world.push()
    assert "a" in client.get("/v1/queries/q/explain").text
    assert client.get("/v1/queries/q/explain?format=json").json()["query"] == "q"
    assert client.get("/v1/plan").status_code == 200
    assert isinstance(client.get("/v1/plan?format=json").json(), dict)


def test_queries_that_differ_in_a_constant_are_explained(world, client, join):
    for constant in range(5):
        create(client, join.replace("WITHIN", f"AND a.v > {constant} WITHIN"), f"q{constant}")
    for moment in range(3):
        world.push(a=[(1, 1, moment)] * 50, b=[(1, 1, moment)] * 50)
        for path in (
            "/v1/plan",
            "/v1/plan?format=json",
            "/v1/queries/q3/explain",
            "/v1/queries/q3/explain?format=json",
        ):
            assert client.get(path).status_code == 200


def test_validate_creates_nothing(client, join):
    found = client.post("/v1/validate", json={"sql": "SELECT a.k, b.k FROM a JOIN b ON a.k = b.k"}).json()
    assert found["growing_streams"] == ["a", "b"]
    assert [column["name"] for column in found["columns"]] == ["k", "k_2"]
    bounded = client.post("/v1/validate", json={"sql": join}).json()
    assert bounded["growing_streams"] == []
    assert bounded["estimate"]["results_a_batch"]["value"] >= 0
    assert client.post("/v1/validate", json={"sql": "SELECT"}).status_code == 422
    assert client.get("/v1/queries").json()["queries"] == []
