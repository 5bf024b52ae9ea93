"""Who gets in, as whom, from where; and that a token never shows."""

from __future__ import annotations

import json
import logging

import httpx
import pytest

from dovetail.core.errors import ServiceError
from dovetail.service.access.tokens import Role, TokenFile
from dovetail.service.config.options import Limits

READS = ["/v1/queries", "/v1/streams", "/v1/plan", "/v1/progress", "/v1/status", "/v1/whoami", "/metrics"]
CHANGES = [
    ("POST", "/v1/queries", {"sql": "SELECT 1"}, Role.WRITE),
    ("PUT", "/v1/queries/q", {"sql": "SELECT 1"}, Role.WRITE),
    ("PATCH", "/v1/queries/q", {"options": {}}, Role.WRITE),
    ("DELETE", "/v1/queries/q", None, Role.WRITE),
    ("POST", "/v1/streams", {"name": "s", "format": "rate"}, Role.ADMIN),
    ("POST", "/v1/statements", {"statement": "CREATE CONTINUOUS QUERY q AS SELECT 1"}, Role.WRITE),
    ("POST", "/v1/statements", {"statement": "DROP CONTINUOUS QUERY q"}, Role.WRITE),
    ("POST", "/v1/statements", {"statement": "ALTER CONTINUOUS QUERY q SET (backfill = false)"}, Role.WRITE),
    ("POST", "/v1/statements", {"statement": "CREATE STREAM s WITH (format = 'rate')"}, Role.ADMIN),
]


@pytest.mark.parametrize("path", [*READS, "/v1/nothing", "/other"])
def test_nothing_is_reached_without_a_token(world, path):
    client = world.client(role=None)
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic abc"},
        {"Authorization": "Bearer"},
    ):
        answer = client.get(path, headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (401, "Unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_what_needs_no_token_says_nothing(world):
    client = world.client(role=None)
    assert client.get("/healthz").json() == {"status": "ok"}


def test_pages_about_the_interface_need_a_token_unless_they_are_open_and_come_from_here_alone(world):
    for path in ("/openapi.json", "/docs"):
        assert world.client(role=None).get(path).status_code == 401
        assert world.client(Role.READ).get(path).status_code == 200
    opened = world.client(role=None, open_docs=True)
    assert opened.get("/openapi.json").json()["info"]["title"] == "Dovetail"
    page = opened.get("/docs")
    assert (page.status_code, "POST /v1/queries" in page.text, "://" in page.text) == (200, True, False)
    assert "script" not in page.text


@pytest.mark.parametrize("path", READS)
def test_readers_read(world, path):
    assert world.client(Role.READ).get(path).status_code == 200


@pytest.mark.parametrize(("method", "path", "body", "needed"), CHANGES)
def test_a_role_below_the_needed_one_is_refused(world, method, path, body, needed):
    for role in Role:
        answer = world.client(role).request(method, path, json=body)
        is_refused = answer.status_code == 403
        assert is_refused == (not role.includes(needed)), (role, answer.text)
        if is_refused:
            assert answer.json()["error"]["type"] == "RoleTooLow"
    assert world.session.engine.queries.records() == ()


def test_a_sink_needs_an_admin_unless_it_is_open(world, join):
    body = {"sql": join, "name": "q", "options": {"sink": "parquet", "sink.path": "/srv/x"}}
    assert world.client(Role.WRITE).post("/v1/queries", json=body).status_code == 403
    text = f"CREATE CONTINUOUS QUERY q WITH (sink = 'parquet', sink.path = '/srv/x') AS {join}"
    assert world.client(Role.WRITE).post("/v1/statements", json={"statement": text}).status_code == 403
    opened = world.client(Role.WRITE, open_sinks=("parquet",))
    assert opened.post("/v1/queries", json=body).status_code in (202, 422)


def test_a_query_whose_sink_would_stay_is_replaced_by_admins_only(world, join):
    body = {"sql": join, "name": "q", "options": {"sink": "parquet", "sink.path": "/srv/x"}}
    opened = world.client(Role.WRITE, open_sinks=("parquet",))
    assert opened.post("/v1/queries", json=body).status_code == 202
    other = {"sql": join + " -- another"}
    assert world.client(Role.WRITE).put("/v1/queries/q", json=other).status_code == 403
    assert opened.put("/v1/queries/q", json=other).status_code == 202
    assert opened.get("/v1/queries/q").json()["options"]["sink"]["format"] == "parquet"


def test_a_writer_changes_its_own_queries_and_an_admin_all(world, client, join):
    writer = world.client(Role.WRITE)
    for who, name in ((client, "of_admin"), (writer, "of_writer")):
        assert who.post("/v1/queries", json={"sql": join, "name": name}).status_code == 202
    other = {"sql": join + " -- another"}
    refused = [
        writer.delete("/v1/queries/of_admin"),
        writer.put("/v1/queries/of_admin", json=other),
        writer.post("/v1/queries", json={**other, "name": "of_admin", "replace": True}),
        writer.patch("/v1/queries/of_admin", json={"options": {"max_results_per_batch": 1}}),
        writer.post("/v1/statements", json={"statement": "DROP CONTINUOUS QUERY of_admin"}),
        writer.post(
            "/v1/statements", json={"statement": "ALTER CONTINUOUS QUERY of_admin SET (max_results_per_batch = 1)"}
        ),
        writer.post("/v1/statements", json={"statement": f"CREATE OR REPLACE CONTINUOUS QUERY of_admin AS {join}"}),
    ]
    for answer in refused:
        assert (answer.status_code, answer.json()["error"]["type"]) == (403, "RoleTooLow"), answer.text
        assert "belongs to 'admin'" in answer.text
    assert world.audit().count('"outcome":"refused"') == len(refused)
    assert writer.put("/v1/queries/of_writer", json=other).status_code == 202
    assert writer.delete("/v1/queries/of_writer").status_code == 202
    assert client.delete("/v1/queries/of_admin").status_code == 202


def test_values_of_a_sink_are_not_shown_unless_they_are_known_to_be_harmless(world, client, join):
    options = {"sink": "kafka", "sink.topic": "t", "sink.kafka.unheard.of": "hunter2"}
    assert client.post("/v1/queries", json={"sql": join, "name": "q", "options": options}).status_code == 202
    for answer in (client.get("/v1/queries"), client.get("/v1/queries/q"), client.get("/v1/queries/q/explain")):
        assert "hunter2" not in answer.text
    assert client.get("/v1/queries/q").json()["options"]["sink"]["options"]["topic"] == "t"
    sink = world.session.engine.queries.named("q").options.sink
    assert (sink.options["kafka.unheard.of"], "hunter2" in repr(sink)) == ("hunter2", False)


SECRETS = {
    "url": "jdbc:postgresql://db/shop?user=u&password=hunter2",
    "pwd": "hunter2",
    "apikey": "hunter2",
    "passphrase": "hunter2",
    "private_key": "hunter2",
    "sas": "hunter2",
    "kafka.ssl.keystore.key": "hunter2",
    "header.Authorization": "Bearer hunter2",
    "path": "s3a://key:hunter2@bucket/folder",
}


@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_in_clear_is_refused_and_stands_nowhere(world, client, join, caplog, key):
    caplog.set_level(logging.DEBUG)
    sink = {"sink": "jdbc", f"sink.{key}": SECRETS[key]}
    assert client.post("/v1/queries", json={"sql": join, "name": "plain", "options": {}}).status_code == 202
    answers = [
        client.post("/v1/queries", json={"sql": join, "name": "q", "options": sink}),
        client.patch("/v1/queries/plain", json={"options": sink}),
        client.post("/v1/streams", json={"name": "s", "format": "rate", "options": {key: SECRETS[key]}}),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["error"]["type"]) == (422, "SecretError"), answer.text
        assert "secret://env/NAME" in answer.json()["error"]["hint"]
        assert "hunter2" not in answer.text
    assert "hunter2" not in caplog.text
    for path in world.folder.rglob("*"):
        assert not path.is_file() or b"hunter2" not in path.read_bytes(), path


def test_a_reference_is_kept_and_shown_as_it_is_and_needs_an_admin(world, client, join):
    options = {"sink": "kafka", "sink.topic": "t", "sink.kafka.sasl.jaas.config": "secret://env/JAAS"}
    body = {"sql": join, "name": "q", "options": options}
    assert client.post("/v1/queries", json=body).status_code == 202
    shown = client.get("/v1/queries/q").json()["options"]["sink"]["options"]
    assert shown == {"topic": "t", "kafka.sasl.jaas.config": "secret://env/JAAS"}
    writer = world.client(Role.WRITE, open_sinks=("kafka",))
    refused = writer.post("/v1/queries", json={**body, "name": "r"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "RoleTooLow")
    malformed = {"sink": "kafka", "sink.topic": "secret://vault/x"}
    answer = client.post("/v1/queries", json={"sql": join, "name": "r", "options": malformed})
    assert (answer.status_code, answer.json()["error"]["type"]) == (422, "SecretError")


def test_files_of_a_checkpoint_and_a_service_are_their_owners_alone(world, client, join):
    assert client.post("/v1/queries", json={"sql": join, "name": "q"}).status_code == 202
    world.push(a=[(1, 2, 0)], b=[(1, 3, 1)])
    found = [path for folder in ("checkpoint", "service") for path in (world.folder / folder).rglob("*")]
    kinds = {path.relative_to(world.folder).parts[:2] for path in found}
    assert {("checkpoint", "buckets"), ("checkpoint", "answers"), ("checkpoint", "changelog")} <= kinds
    for path in [*found, world.folder / "checkpoint", world.folder / "service"]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_whoami(world):
    assert world.client(Role.WRITE).get("/v1/whoami").json() == {"name": "write", "role": "write", "auth": True}


def test_auth_off_is_for_loopback_only(world):
    with pytest.raises(ServiceError, match="without auth"):
        world.options(auth=False, host="0.0.0.0")  # noqa: S104 - it is refused
    assert world.client(role=None, auth=False).get("/v1/whoami").json()["name"] == "anonymous"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_foreign_host_is_refused_on_loopback(client, host):
    answer = client.get("/v1/whoami", headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "UnknownHost")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "[::1]:80", "127.0.0.1", "dovetail.internal"])
def test_own_names_pass(world, host):
    client = world.client(allowed_hosts=("dovetail.internal",))
    assert client.get("/v1/whoami", headers={"Host": host}).status_code == 200


def test_answers_carry_security_headers_and_no_cors(client):
    answer = client.get("/v1/whoami", headers={"Origin": "https://evil.example"})
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert "Server" not in answer.headers
    assert client.options("/v1/queries", headers={"Origin": "https://evil.example"}).status_code == 405


def test_request_ids_are_kept_if_plain(client):
    assert client.get("/healthz", headers={"X-Request-Id": "abc-1"}).headers["X-Request-Id"] == "abc-1"
    assert client.get("/healthz", headers={"X-Request-Id": "a b<"}).headers["X-Request-Id"] != "a b<"


def test_a_body_beyond_the_limit_is_refused(world, join):
    client = world.client(limits=Limits(max_body_bytes=500))
    assert client.post("/v1/queries", json={"sql": join + " " * 600}).status_code == 413

    def pieces():
        for _ in range(10):
            yield b" " * 100

    assert client.post("/v1/queries", content=pieces()).status_code == 413
    assert client.post("/v1/validate", json={"sql": join}).status_code == 200


def test_a_statement_beyond_the_limit_is_refused(world, join):
    client = world.client(limits=Limits(max_statement_chars=100))
    for path, body in (
        ("/v1/queries", {"sql": join + " " * 100}),
        ("/v1/validate", {"sql": join + " " * 100}),
        ("/v1/statements", {"statement": "SHOW QUERIES" + " " * 100}),
    ):
        assert client.post(path, json=body).status_code == 413


def test_a_body_that_is_no_json_is_a_bad_request(client):
    for content in (b"{", b"\xff\xfe", b"[" * 100_000):
        answer = client.post("/v1/queries", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"]


def test_unknown_fields_are_refused_by_name(client, join):
    answer = client.post("/v1/queries", json={"sql": join, "optoins": {}})
    assert (answer.status_code, answer.json()["error"]["where"]) == (422, "body.optoins")


def test_a_new_and_a_revoked_token_count_at_once(world, client):
    tokens = TokenFile(world.options().tokens_file)
    token = tokens.create("late", Role.READ)
    headers = {"Authorization": f"Bearer {token}"}
    assert client.get("/v1/whoami", headers=headers).json()["name"] == "late"
    tokens.revoke("late")
    assert client.get("/v1/whoami", headers=headers).status_code == 401


def test_the_audit_log_says_who_did_what(world, client, join):
    client.post("/v1/queries", json={"sql": join, "name": "q"}, headers={"X-Request-Id": "r1"})
    world.client(Role.READ).delete("/v1/queries/q")
    client.get("/v1/queries")
    client.post("/v1/statements", json={"statement": "DROP CONTINUOUS QUERY q"})
    entries = [json.loads(line) for line in world.audit().splitlines()]
    told = [(e["token"], e["route"], e["query"], e["status"], e["outcome"], e["error"]) for e in entries]
    assert told == [
        ("admin", "/v1/queries", "q", 202, "accepted", None),
        ("read", "/v1/queries/{name}", "q", 403, "refused", "RoleTooLow"),
        ("admin", "/v1/statements", "q", 202, "accepted", None),
    ]
    assert entries[0]["request_id"] == "r1"
    assert oct(world.options().audit_file.stat().st_mode)[-3:] == "600"


def test_a_token_never_shows(world, join, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    secrets = []
    texts = []
    for role in Role:
        client = world.client(role)
        secrets.append(world.token_by_role[role])
        for method, path, body, _ in CHANGES:
            texts.append(client.request(method, path, json=body).text)
        texts += [client.get(path).text for path in READS]
        texts.append(client.post("/v1/queries", json={"sql": join, "name": "q"}).text)
    made_up = "dvt_" + "x" * 43
    secrets.append(made_up)
    texts.append(httpx.get(f"{client.base_url}/v1/queries", headers={"Authorization": f"Bearer {made_up}"}).text)
    files = [
        path.read_text() for path in world.folder.rglob("*") if path.is_file() and path.suffix in (".json", ".jsonl")
    ]
    everything = "\n".join(
        [*texts, *files, world.audit(), *(r.getMessage() for r in caplog.records), *capfd.readouterr()]
    )
    assert len(everything) > 5_000
    assert [secret for secret in secrets if secret in everything] == []
