from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from dovetail.core.errors import ServiceError
from dovetail.service.access.owners import Owners
from dovetail.service.access.rate_limit import RateLimit
from dovetail.service.access.refusals import TooMany
from dovetail.service.access.tokens import Role
from dovetail.service.config.options import Limits


def test_a_token_may_have_so_many_queries_and_a_drop_makes_room(world, join):
    client = world.client(Role.WRITE, limits=Limits(queries_per_token=2))
    for name in ("q1", "q2", "q2"):
        assert client.post("/v1/queries", json={"sql": join, "name": name}).status_code == 202
    refused = client.post("/v1/queries", json={"sql": join, "name": "q3"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (429, "TooMany")
    assert int(refused.headers["Retry-After"]) > 0
    text = f"CREATE CONTINUOUS QUERY q3 AS {join}"
    assert client.post("/v1/statements", json={"statement": text}).status_code == 429
    other = world.client(Role.ADMIN, limits=Limits(queries_per_token=2))
    assert other.post("/v1/queries", json={"sql": join, "name": "q3"}).status_code == 202
    client.delete("/v1/queries/q1")
    assert client.post("/v1/queries", json={"sql": join, "name": "q4"}).status_code == 202


def test_a_create_that_makes_nothing_does_not_change_the_owner(world, join):
    world.client(Role.ADMIN).post("/v1/queries", json={"sql": join, "name": "q"})
    writer = world.client(Role.WRITE)
    assert writer.post("/v1/queries", json={"sql": join + " ", "name": "q"}).status_code == 409
    assert writer.post("/v1/queries", json={"sql": join, "name": "q"}).status_code == 202
    assert writer.get("/v1/queries/q").json()["owner"] == "admin"


def test_owners_outlive_the_service_and_a_line_cut_off_by_a_crash(tmp_path):
    path = tmp_path / "service" / "owners.jsonl"
    owners = Owners(path)
    for name, owner in (("q", "alice"), ("gone", "bob")):
        with owners.claiming(name, owner):
            pass
    path.write_text(path.read_text() + '{"query": "ha')
    again = Owners(path)
    again.forget_others(["q"])
    assert (again.of("q"), again.of("gone"), path.read_text().count("\n")) == ("alice", None, 2)


def test_an_owner_is_on_the_disk_before_the_query_is_accepted(world, join, monkeypatch):
    world.session.stop()
    world.open_session(durability="power")
    client = world.client(Role.WRITE)
    synced, real = [], os.fsync

    def noted(opened: int) -> None:
        real(opened)
        synced.append(Path(f"/proc/self/fd/{opened}").resolve().name)

    monkeypatch.setattr(os, "fsync", noted)
    assert client.post("/v1/queries", json={"sql": join, "name": "q"}).status_code == 202
    assert (synced[0], synced[-1]) == ("owners.jsonl", "changelog")


def test_a_checkpoint_that_somebody_emptied_is_told(world, join, caplog):
    world.client(Role.WRITE).post("/v1/queries", json={"sql": join, "name": "q"})
    world.stop_servers()
    world.session.stop()
    world.open_session()
    world.client(Role.WRITE)
    assert "if it was not emptied on purpose" not in caplog.text
    world.stop_servers()
    world.session.stop()
    shutil.rmtree(world.folder / "checkpoint")
    world.open_session()
    world.client(Role.WRITE)
    assert "names the owners of 1 queries: if it was not emptied on purpose, stop and restore it" in caplog.text


def test_of_two_claims_the_one_that_makes_the_query_counts(tmp_path):
    for winner in ("alice", "bob"):
        owners = Owners(tmp_path / winner / "owners.jsonl")
        with owners.claiming("q", "alice") as first, owners.claiming("q", "bob") as second:
            assert owners.count("bob", []) == 1
            first.is_kept, second.is_kept = winner == "alice", winner == "bob"
        assert (owners.of("q"), Owners(tmp_path / winner / "owners.jsonl").of("q")) == (winner, winner)


def test_a_claim_takes_a_query_from_nobody_before_it_is_decided(tmp_path):
    path = tmp_path / "owners.jsonl"
    owners = Owners(path)
    with owners.claiming("q", "carol"):
        pass
    with owners.claiming("q", "alice") as first, owners.claiming("q", "bob") as second:
        assert owners.of("q") == "carol"
        assert [owners.count(each, ["q"]) for each in ("alice", "bob", "carol")] == [1, 1, 1]
        first.is_kept = second.is_kept = False
    assert (owners.of("q"), Owners(path).of("q")) == ("carol", "carol")
    with owners.claiming("q", "bob"):
        pass
    assert (owners.of("q"), Owners(path).of("q")) == ("bob", "bob")


def test_changes_come_at_a_rate(world, join):
    client = world.client(limits=Limits(changes_per_s=1, changes_burst=3))
    codes = [client.post("/v1/queries", json={"sql": join, "name": f"q{n}"}).status_code for n in range(5)]
    assert codes[:3] == [202, 202, 202]
    assert codes[4] == 429
    assert client.get("/v1/queries").status_code == 200


def test_permits_come_back_with_time():
    now = 0.0
    rate = RateLimit("changes", per_s=2, burst=2, now=lambda: now)
    rate.take("x")
    rate.take("x")
    with pytest.raises(TooMany) as refused:
        rate.take("x")
    assert refused.value.retry_after_s == pytest.approx(0.5)
    rate.take("y")
    now = 0.5
    rate.take("x")


def test_results_per_batch_are_bounded_for_writers(world, join):
    limits = Limits(max_results_per_batch=100)
    writer = world.client(Role.WRITE, limits=limits)
    made = writer.post("/v1/queries", json={"sql": join, "name": "q"}).json()
    assert made["options"]["max_results_per_batch"] == 100
    for value in (101, None):
        body = {"options": {"max_results_per_batch": value}}
        assert writer.patch("/v1/queries/q", json=body).status_code == 403
    assert writer.patch("/v1/queries/q", json={"options": {"max_results_per_batch": 99}}).status_code == 202
    admin = world.client(Role.ADMIN, limits=limits)
    assert admin.patch("/v1/queries/q", json={"options": {"max_results_per_batch": 5000}}).status_code == 202


@pytest.mark.parametrize("given", [{"queries_per_token": 0}, {"max_body_bytes": True}, {"changes_per_s": 1.5}])
def test_limits_that_are_none_are_refused(given):
    with pytest.raises(ServiceError):
        Limits(**given)
