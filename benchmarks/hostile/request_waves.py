"""Hostile requests and queries through REST, while the good queries run."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Sequence

from benchmarks.hostile.arena import HANG_S
from benchmarks.hostile.corpus.requests import HostileRequest
from benchmarks.hostile.records import HostileQuery, Outcome, Tried
from benchmarks.hostile.served import TOKEN, Served
from benchmarks.hostile.world import GOOD_QUERIES

CHANNEL = "REST"
READ_S = 20.0
"""A client that has sent everything has an answer, or the end of its connection, after this."""
Say = Callable[[str], None]


class RequestWaves:
    def __init__(self, served: Served, say: Say) -> None:
        self.served = served
        self.tried: list[Tried] = []
        self.http_5xx = 0
        self.batches_lost = 0
        self.hangs = 0
        self._say = say
        self._number = 0

    # -- requests ----------------------------------------------------------------------------------

    def run_requests(self, requests: Sequence[HostileRequest]) -> None:
        for number, request in enumerate(requests):
            began = time.perf_counter()
            outcome, detail = self._send(request) if request.times == 1 else self._flood(request)
            self._note(request.mechanism, request.what, outcome, detail, time.perf_counter() - began)
            if number % 40 == 39:
                self._check_alive()
        self._check_alive()

    def _send(self, request: HostileRequest) -> tuple[Outcome, str]:
        began = time.perf_counter()
        try:
            with self._connected() as connection:
                for place, part in enumerate(request.parts):
                    if place:
                        time.sleep(request.pause_s)
                    connection.sendall(self._filled(part))
                if not request.reads:
                    return Outcome.HELD, "went away"
                answer = _read_all(connection)
        except TimeoutError:
            self.hangs += 1
            return Outcome.HANG, f"no answer after {time.perf_counter() - began:.0f} s"
        except OSError as error:
            return Outcome.HELD, f"the connection was closed: {error}"
        return self._of_answer(answer)

    def _of_answer(self, answer: bytes) -> tuple[Outcome, str]:
        line = answer.partition(b"\r\n")[0].decode("latin-1")
        status = line.split(" ")[1] if line.startswith("HTTP/1.1 ") else ""
        body = answer.partition(b"\r\n\r\n")[2]
        if status.startswith("5"):
            self.http_5xx += 1
            return Outcome.SERVER_ERROR, f"{line} {body[:200]!r}"
        if b"Traceback" in body:
            return Outcome.POOR_ERROR, body[:200].decode("latin-1")
        return Outcome.HELD, line or "the connection was closed"

    def _flood(self, request: HostileRequest) -> tuple[Outcome, str]:
        """Many at once, which stay; meanwhile those who control the service must get their answers."""
        connections: list[socket.socket] = []
        try:
            for _ in range(request.times):
                connection = self._connected()
                connections.append(connection)
                try:
                    connection.sendall(self._filled(request.parts[0]))
                except OSError:
                    continue
            healthy, status = self.served.ask("GET", "/healthz"), self.served.ask("GET", "/v1/status")
        except TimeoutError:
            self.hangs += 1
            return Outcome.HANG, "nobody else was answered"
        except OSError as error:
            return Outcome.LOST_BATCH, f"nobody else was answered: {error}"
        finally:
            for connection in connections:
                connection.close()
        if healthy.status != 200 or status.status != 200:
            self.http_5xx += 1
            return Outcome.SERVER_ERROR, f"/healthz {healthy.status}, /v1/status {status.status}"
        return Outcome.HELD, f"others answered after {healthy.seconds:.2f} s"

    def _connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.served.port), timeout=READ_S)

    def _filled(self, part: bytes) -> bytes:
        return part.replace(b"{token}", TOKEN.encode()).replace(b"{host}", f"127.0.0.1:{self.served.port}".encode())

    # -- queries -----------------------------------------------------------------------------------

    def run_queries(self, queries: Iterable[HostileQuery], per_wave: int) -> None:
        accepted: list[tuple[HostileQuery, str]] = []
        for hostile in queries:
            self._number += 1
            name, began = f"hostile_{self._number}", time.perf_counter()
            outcome, detail = self._create(hostile, name)
            if outcome is None:
                accepted.append((hostile, name))
            else:
                self._note(hostile.mechanism, hostile.sql, outcome, detail, time.perf_counter() - began)
            if len(accepted) == per_wave:
                self._run_wave(accepted)
                accepted = []
        if accepted:
            self._run_wave(accepted)

    def _create(self, hostile: HostileQuery, name: str) -> tuple[Outcome | None, str]:
        try:
            answer = self.served.ask("PUT", f"/v1/queries/{name}", {"sql": hostile.sql})
        except TimeoutError:
            self.hangs += 1
            return Outcome.HANG, "no answer"
        if answer.status >= 500 or answer.status == 0:
            self.http_5xx += 1
            return Outcome.SERVER_ERROR, f"{answer.status} {answer.body[:200]!r}"
        if answer.status < 300:
            return None, ""
        error = (answer.json or {}).get("error") or {}
        is_told = bool(error.get("message") and error.get("hint"))
        return (Outcome.REFUSED if is_told else Outcome.POOR_ERROR), f"{answer.status} {error.get('message')}"

    def _run_wave(self, accepted: list[tuple[HostileQuery, str]]) -> None:
        began = time.perf_counter()
        committed = self.served.run_wave()
        seconds = time.perf_counter() - began
        queries = self.served.queries()
        fallen = [name for name in GOOD_QUERIES if queries.get(name, {}).get("state") != "running"]
        lost = None if committed else Outcome.LOST_BATCH
        self.batches_lost += not committed
        for hostile, name in accepted:
            found = queries.get(name, {})
            outcome, detail = _of_state(str(found.get("state")), found.get("error"))
            if fallen:
                outcome, detail = Outcome.HIT_NEIGHBOUR, ", ".join(fallen)
            self._note(hostile.mechanism, hostile.sql, lost or outcome, detail, seconds)
            self.served.ask("DELETE", f"/v1/queries/{name}")
        self._say(f"REST wave {self.served.wave}: {len(self.tried)} tried, {len(accepted)} took part, {seconds:.1f} s")

    def _check_alive(self) -> None:
        """A wave of rows goes through, and the good queries run."""
        if not self.served.run_wave():
            self.batches_lost += 1
            self._note("the service itself", f"wave {self.served.wave}", Outcome.LOST_BATCH, "no batch", HANG_S)

    def _note(self, mechanism: str, what: str, outcome: Outcome, detail: str, seconds: float) -> None:
        self.tried.append(Tried(mechanism, what, CHANNEL, outcome, detail, seconds))


def _of_state(state: str, error: str | None) -> tuple[Outcome, str]:
    if state == "quarantined":
        return (Outcome.STOPPED if error else Outcome.POOR_ERROR), error or "no reason"
    if state == "running":
        return Outcome.TOOK_NO_PART, "answered"
    return Outcome.WRONG, f"it is {state} after its wave"


def _read_all(connection: socket.socket) -> bytes:
    """Until the service closes, or what an event stream sends first."""
    received = b""
    deadline = time.monotonic() + READ_S
    while len(received) < 1 << 20:
        connection.settimeout(max(0.01, deadline - time.monotonic()) if not received else 0.5)
        try:
            part = connection.recv(1 << 16)
        except TimeoutError:
            if received:
                return received
            raise
        if not part:
            return received
        received += part
    return received
