from __future__ import annotations

import asyncio
import re

from dovetail.engine.batch.batches import Batches
from dovetail.service.config.options import Limits


def test_status_and_progress(world, client, join):
    assert client.get("/v1/progress").json() == {"committed_batch": -1, "progress": None}
    client.post("/v1/queries", json={"sql": join, "name": "q"})
    world.push(a=[(1, 1, 0)], b=[(1, 2, 0)])
    progress = client.get("/v1/progress").json()
    assert (progress["committed_batch"], progress["progress"]["numInputRows"]) == (0, 2)
    status = client.get("/v1/status").json()
    assert (status["state"], status["queries"], status["committed_batch"]) == ("running", {"running": 1}, 0)


def test_progress_does_not_wait_on_the_event_loop(client, monkeypatch):
    """It waits for a batch that is being told, and everybody's requests are on the loop."""
    is_on_loop = []

    def progress(_batches):
        is_on_loop.append(asyncio._get_running_loop() is not None)

    monkeypatch.setattr(Batches, "progress", property(progress))
    assert client.get("/v1/progress").status_code == 200
    assert is_on_loop == [False]


def test_metrics_count_and_have_no_label_that_a_client_can_make_up(world, client, join):
    for number in range(30):
        client.post("/v1/queries", json={"sql": join, "name": f"mark_{number}"})
        client.get(f"/v1/queries/mark_{number}/nothing")
        client.get(f"/mark_{number}")
    client.request("MARK", "/v1/queries")
    world.push(a=[(1, 1, 0)], b=[(1, 2, 0)])
    text = client.get("/metrics").text
    assert "mark" not in text.lower()
    assert 'dovetail_queries{state="running"} 30.0' in text
    assert 'dovetail_input_rows_total{stream="a"} 1.0' in text
    assert "dovetail_output_rows_total 30.0" in text
    assert re.search(r'dovetail_http_requests_total\{method="POST",route="/v1/queries",status="202"\} 30.0', text)
    assert 'dovetail_store_rows{kind="stream"} 2.0' in text
    series = {line.partition(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    assert len(series) < 200


def test_windows_of_clients_make_no_new_series(world):
    client = world.client(limits=Limits(changes_burst=500))
    counts = []
    for seconds in range(1, 8):
        sql = (
            f"SELECT x.k FROM (SELECT k, window(ts, '{seconds} seconds') AS w FROM a) x "
            f"JOIN (SELECT k, window(ts, '{seconds} seconds') AS w FROM b) y ON x.k = y.k AND x.w = y.w"
        )
        assert client.post("/v1/queries", json={"sql": sql, "name": f"w{seconds}"}).status_code == 202
        world.push(a=[(1, 1, 0)], b=[(1, 2, 0)])
        counts.append(client.get("/metrics").text.count("\ndovetail_store_"))
    assert len(set(counts)) == 1


def test_the_interface_describes_itself(client):
    spec = client.get("/openapi.json").json()
    assert {"/v1/queries", "/v1/queries/{name}", "/v1/statements", "/v1/events", "/healthz", "/metrics"} <= set(
        spec["paths"]
    )
    assert spec["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
