"""Bad rows over HTTP: looked at by readers, retried by admins."""

from __future__ import annotations

from dovetail.service.access.tokens import Role

YEARS_AHEAD_S = 20 * 366 * 86_400.0


def test_bad_rows_are_shown_and_retried(world):
    admin, reader = world.client(Role.ADMIN), world.client(Role.READ)
    world.push(a=[(1, 10, 0.0), (1, 11, YEARS_AHEAD_S)])
    page = reader.get("/v1/streams/a/bad_rows").json()
    assert (page["total"], page["kept"], page["overflowed"]) == (1, 1, 0)
    (row,) = page["rows"]
    assert (row["values"]["v"], row["batch"], row["position"], row["source"]) == (11, 0, 1, None)
    assert "more than 1 day past the batch's time" in row["reason"]
    assert 'dovetail_bad_rows_total{stream="a"} 1.0' in reader.get("/metrics").text
    assert reader.post("/v1/streams/a/bad_rows/retry").status_code == 403
    answer = admin.post("/v1/streams/a/bad_rows/retry")
    assert (answer.status_code, answer.json()) == (202, {"stream": "a", "rows": 1})
    world.push()
    (again,) = reader.get("/v1/streams/a/bad_rows").json()["rows"]
    assert again["batch"] == 1  # judged anew, and bad again
    assert reader.get("/v1/streams/nope/bad_rows").status_code == 404


def test_rules_for_bad_rows_are_declared_shown_and_changed(world):
    admin = world.client(Role.ADMIN)
    body = {"name": "ticks", "format": "rate", "event_time": "timestamp", "on_bad_row": "drop"}
    assert admin.post("/v1/streams", json=body).json()["on_bad_row"] == "drop"
    changed = admin.post("/v1/streams", json={**body, "max_event_time_ahead": "off"})
    assert (changed.status_code, changed.json()["max_event_time_ahead"]) == (201, "off")
    assert admin.get("/v1/streams/ticks").json()["max_event_time_ahead"] == "off"
    assert admin.post("/v1/streams", json={**body, "on_bad_row": "ignore"}).status_code == 422
