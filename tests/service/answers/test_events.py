"""Server-sent events: every batch once and in order, over reconnects and restarts; nothing kept per client."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager

import httpx
import pytest

from dovetail.core.errors import SessionError
from dovetail.service.answers.commit_feed import PROGRESS_KEPT, CommitFeed
from dovetail.service.config.options import Limits


class Events:
    """Reads a stream's events one by one; those that only say why nothing comes are kept aside."""

    def __init__(self, response):
        self.status_code = response.status_code
        self.heartbeats = 0
        self.waiting = []
        self._lines = response.iter_lines()

    def next(self):
        while (found := self.any()) is not None and found[0] == "waiting":
            self.waiting.append(found[1])
        return found

    def any(self):
        found = {}
        for line in self._lines:
            if line.startswith(":"):
                self.heartbeats += 1
            elif line:
                key, _, value = line.partition(": ")
                found[key] = value
            elif found:
                return found.get("event"), json.loads(found["data"]), found.get("id")
        return None

    def rest(self):
        return list(iter(self.next, None))


@contextmanager
def listening(client, path, **more):
    with client.stream("GET", path, timeout=20, **more) as response:
        yield Events(response)


def matches(world, batch, count=1):
    world.push(a=[(batch, n, batch) for n in range(count)], b=[(batch, 0, batch)])


def test_answers_come_with_their_batches_until_the_query_is_dropped(world, client, join):
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    with listening(client, "/v1/queries/q/events") as events:
        kind, data, event_id = events.next()
        assert (kind, data["state"], event_id) == ("state", "pending", None)
        matches(world, 0)
        kind, data, _ = events.next()
        assert (kind, data["state"], data["created_batch"]) == ("state", "running", 0)
        kind, data, event_id = events.next()
        assert (kind, event_id, data["rows"]) == ("batch", "0", [{"k": 0, "av": 0, "bv": 0}])
        world.push()
        matches(world, 2, count=3)
        kind, data, event_id = events.next()
        assert (kind, event_id, data["row_count"]) == ("batch", "2", 3)
        client.delete("/v1/queries/q")
        world.push()
        assert [kind for kind, _, _ in events.rest()][-1] == "end"


def test_a_client_that_comes_back_loses_and_doubles_nothing(world, client, join):
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    matches(world, 0)
    matches(world, 1)
    with listening(client, "/v1/queries/q/events?from_batch=0") as events:
        seen = [event for event in (events.next() for _ in range(2)) if event[0] == "batch"]
    matches(world, 2)
    world.stop_servers()
    world.session.stop()
    world.open_session()
    client = world.client()
    matches(world, 3)
    with listening(client, "/v1/queries/q/events", headers={"Last-Event-ID": seen[-1][2]}) as events:
        again = [events.next() for _ in range(4)]
    batches = [data["batch"] for kind, data, _ in [*seen, *again] if kind == "batch"]
    assert batches == [0, 1, 2, 3]


def test_rows_of_an_event_are_bounded_and_it_says_so(world, join):
    client = world.client(limits=Limits(max_event_rows=2))
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    matches(world, 0, count=5)
    for query, shown in (("rows=1", 1), ("rows=1000", 2), ("rows=0", 0)):
        with listening(client, f"/v1/queries/q/events?from_batch=0&{query}") as events:
            assert events.next()[0] == "state"
            _, data, _ = events.next()
        assert (len(data["rows"]), data["row_count"], data["truncated"]) == (shown, 5, True)


def test_a_replaced_query_ends_its_stream(world, client, join):
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    world.push()
    with listening(client, "/v1/queries/q/events") as events:
        events.next()
        client.put("/v1/queries/q", json={"sql": join.replace("10", "9")})
        world.push()
        assert events.rest()[-1][:2] == ("end", {"reason": "replaced"})


def test_stopping_ends_every_stream(world, client, join):
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    with listening(client, "/v1/queries/q/events") as one, listening(client, "/v1/events") as other:
        one.next()
        stopping = threading.Thread(target=world.stop_servers)
        stopping.start()
        assert one.rest()[-1][:2] == ("end", {"reason": "stopping"})
        assert other.rest()[-1][:2] == ("end", {"reason": "stopping"})
    stopping.join()


def test_a_failed_session_ends_streams_and_stays_readable(world, client, join):
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    matches(world, 0)
    with listening(client, "/v1/queries/q/events") as events:
        events.next()
        world.session.fail(SessionError("the streaming query died"))
        assert events.rest()[-1][:2] == ("end", {"reason": "failed"})
    assert (client.get("/healthz").status_code, client.get("/healthz").json()) == (
        503,
        {"status": "failed", "error": "the streaming query died"},
    )
    status = client.get("/v1/status").json()
    assert (status["state"], status["error"]) == ("failed", "the streaming query died")
    assert len(client.get("/v1/queries/q/results").json()["rows"]) == 1


def test_changes_are_taken_while_the_session_is_down(world, client, join):
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    matches(world, 0)
    world.session.fail(SessionError("the streaming query died"))
    while client.get("/healthz").status_code == 200:
        pass
    assert client.post("/v1/queries", json={"sql": join, "name": "other"}).status_code == 202
    assert client.patch("/v1/queries/q", json={"options": {"max_results_per_batch": 7}}).status_code == 202
    assert client.delete("/v1/queries/q").json()["state"] == "dropped"
    shown = client.post("/v1/statements", json={"statement": "SHOW QUERIES"}).json()["queries"]
    assert [(query["name"], query["state"]) for query in shown] == [("other", "pending")]
    matches(world, 100)
    assert client.get("/v1/queries/other").json()["state"] == "running"


def test_a_stopping_session_refuses_changes(world, client, join):
    (server,) = world.server_by_options.values()
    server.stop_accepting()
    refused = client.post("/v1/queries", json={"sql": join, "name": "other"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "Unavailable")
    assert "Retry-After" in refused.headers


def test_heartbeats_come_while_nothing_happens(world, client, join):
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    with listening(client, "/v1/queries/q/events") as events:
        events.next()
        threading.Timer(0.7, world.push).start()
        events.next()
        assert events.heartbeats >= 2


def test_progress_of_every_batch_and_a_gap_for_those_that_are_gone(world, client):
    with listening(client, "/v1/events") as events:
        world.push()
        kind, data, event_id = events.next()
        assert (kind, data["batchId"], event_id) == ("progress", 0, "0")
    for _ in range(PROGRESS_KEPT + 3):
        world.push()
    with listening(client, "/v1/events", headers={"Last-Event-ID": "0"}) as events:
        assert events.next()[:2] == ("gap", {"from_batch": 1, "to_batch": 3})
        assert events.next()[2] == "4"


def test_open_streams_are_limited_and_places_come_back(world, join):
    client = world.client(limits=Limits(event_streams_per_token=2))
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    with listening(client, "/v1/events"), listening(client, "/v1/queries/q/events"):
        refused = client.get("/v1/events")
        assert (refused.status_code, refused.json()["error"]["type"]) == (429, "TooMany")
    patience = time.monotonic() + 20
    while time.monotonic() < patience:
        with client.stream("GET", "/v1/events", timeout=20) as response:
            if response.status_code == 200:
                return
        time.sleep(0.1)
    pytest.fail("the places of closed streams did not come back")


def test_a_slow_client_holds_no_memory_and_loses_nothing(world, client, join):
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    world.push()
    feed: CommitFeed = next(iter(world.server_by_options.values()))._service.feed
    with listening(client, "/v1/queries/q/events?rows=1000") as events:
        events.next()
        for batch in range(1, 40):
            matches(world, batch, count=200)
        assert len(feed.recent) <= PROGRESS_KEPT
        found = [events.next() for _ in range(39)]
    assert [int(event_id) for _, _, event_id in found] == list(range(1, 40))


def test_many_streams_do_not_hold_up_other_requests(world, client, join):
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    with httpx.Client(
        base_url=client.base_url, headers=client.headers, limits=httpx.Limits(max_connections=60)
    ) as many:
        opened = [many.send(many.build_request("GET", "/v1/queries/q/events"), stream=True) for _ in range(45)]
        waiting = [threading.Thread(target=client.delete, args=("/v1/queries/q?wait=60",)) for _ in range(2)]
        for thread in waiting:
            thread.start()
        assert client.get("/v1/queries").status_code == 200
        # The answer came while both still wait for the batch below.
        assert all(thread.is_alive() for thread in waiting)
        world.push()
        for thread in waiting:
            thread.join()
        for response in opened:
            response.close()


def test_while_nothing_comes_an_event_says_why(world, client, join):
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    with listening(client, "/v1/queries/q/events") as events:
        assert events.any()[0] == "state"
        kind, data, event_id = events.any()
        assert (kind, event_id) == ("waiting", None)
        assert data == {"reason": "pending", "text": "pending: begins with the first batch"}
        world.push(a=[(1, 1, 0)])
        assert events.any()[0] == "state"
        assert events.any()[1]["text"] == "no row of stream b has come yet"
        matches(world, 1)
        assert events.next()[0] == "batch"
