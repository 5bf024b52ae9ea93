"""Connections that say nothing, or too slowly, or too much, keep nobody out; and HTTPS."""

from __future__ import annotations

import socket
import ssl
import subprocess
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from dovetail.core.errors import ServiceError
from dovetail.service.access.tokens import Role
from dovetail.service.config.options import Limits, Tls

PATIENCE_S = 30


def address_of(client: httpx.Client) -> tuple[str, int]:
    return client.base_url.host, client.base_url.port


def test_connections_that_say_nothing_keep_nobody_out(world):
    client = world.client(limits=Limits(connections=40))
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(address_of(client), PATIENCE_S)) for _ in range(300)]
        for each in silent[-20:]:
            each.sendall(b"GET /v1/queries HTTP/1.1\r\nHost: localhost\r\nX-Half: ")
        for _ in range(3):
            assert httpx.get(f"{client.base_url}/healthz", timeout=PATIENCE_S).status_code == 200
        assert client.get("/v1/queries").status_code == 200
        # The oldest made room.
        silent[0].settimeout(PATIENCE_S)
        assert closed(silent[0])


def test_a_head_that_does_not_come_in_time_is_not_waited_for(world):
    client = world.client(limits=Limits(head_timeout_s=1, idle_timeout_s=1))
    with socket.create_connection(address_of(client), PATIENCE_S) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert closed(slow)
    with socket.create_connection(address_of(client), PATIENCE_S) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /heal")
        answer = b""
        while piece := slow.recv(1 << 16):
            answer += piece
        assert answer.startswith(b"HTTP/1.1 200")


def test_a_body_that_does_not_come_in_time_is_refused(world):
    client = world.client(limits=Limits(body_timeout_s=1))
    head = (
        "POST /v1/queries HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
        f"Authorization: {client.headers['Authorization']}\r\n\r\n"
    )
    with socket.create_connection(address_of(client), PATIENCE_S) as slow:
        slow.sendall(head.encode() + b'{"sql": ')
        assert slow.recv(1 << 16).startswith(b"HTTP/1.1 408")


def test_an_idle_connection_is_closed(world):
    client = world.client(limits=Limits(idle_timeout_s=1))
    with socket.create_connection(address_of(client), PATIENCE_S) as idle:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while piece := idle.recv(1 << 16):
            answer += piece
        assert answer.startswith(b"HTTP/1.1 200")


def test_who_asks_too_often_waits_and_health_does_not_count(world):
    client = world.client(Role.READ, limits=Limits(reads_per_s=1, reads_burst=3))
    codes = [client.get("/v1/whoami").status_code for _ in range(5)]
    assert codes.count(200) in (3, 4)
    refused = client.get("/v1/whoami")
    assert (refused.status_code, "Retry-After" in refused.headers) == (429, True)
    assert {client.get("/healthz").status_code for _ in range(20)} == {200}


def test_where_all_places_are_busy_control_still_has_one(world, client, join):
    """Event streams are busy for as long as they are open."""
    limits = Limits(connections=8, event_streams=100, event_streams_per_token=100)
    client = world.client(limits=limits)
    assert client.post("/v1/queries", json={"sql": join, "name": "q"}).status_code == 202
    with ExitStack() as stack:
        statuses = []
        for _ in range(12):
            other = stack.enter_context(
                httpx.Client(base_url=client.base_url, headers=client.headers, timeout=PATIENCE_S)
            )
            statuses.append(stack.enter_context(other.stream("GET", "/v1/queries/q/events")).status_code)
        assert (statuses[0], statuses[-1]) == (200, 503)
        with httpx.Client(base_url=client.base_url, headers=client.headers, timeout=PATIENCE_S) as other:
            assert other.get("/healthz").status_code == 200
            assert other.get("/v1/queries").status_code == 503
            assert other.delete("/v1/queries/q").status_code == 202


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    try:
        subprocess.run([*made, *names, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl to make a certificate with")
    key.chmod(0o600)
    return Tls(certificate, key)


def test_with_a_certificate_clients_come_by_https(world, tls):
    client = world.client(tls=tls)
    assert client.base_url.scheme == "https"
    trusting = ssl.create_default_context(cafile=tls.certificate)
    with httpx.Client(base_url=client.base_url, headers=client.headers, verify=trusting, timeout=PATIENCE_S) as secure:
        assert secure.get("/v1/whoami").status_code == 200
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://{client.base_url.host}:{client.base_url.port}/healthz", timeout=PATIENCE_S)


def test_a_key_that_others_can_read_is_refused(tls):
    tls.key.chmod(0o644)
    with pytest.raises(ServiceError, match=f"chmod 600 {tls.key}"):
        Tls(tls.certificate, tls.key)


def closed(connection: socket.socket) -> bool:
    """Waits until the other side has ended it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
