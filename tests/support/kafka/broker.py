"""A real Kafka broker on loopback: one process in KRaft mode, with a folder of its own.

with KafkaBroker(folder) as broker:
    ... broker.address ...
    broker.kill()       the process is gone, as in a crash
    broker.start()      it comes back on the same port with the same data
"""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from dovetail.core.errors import DovetailError
from tests.support.kafka.jars import broker_jars
from tests.support.kafka.resolve_jars import java_program

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
_CLUSTER_ID = base64.urlsafe_b64encode(b"dovetail-testing").decode().rstrip("=")
_STARTED = "Kafka Server started"


class BrokerFailed(DovetailError):
    """The broker did not start, or not in time."""


class KafkaBroker:
    """Topics come into being when they are first written, with `partitions` partitions each."""

    def __init__(self, folder: Path, *, partitions: int = 2) -> None:
        self.log_file = folder / "broker.log"
        self._class_path = os.pathsep.join(map(str, broker_jars()))
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        port, controller_port = _free_ports(2)
        self.address = f"127.0.0.1:{port}"
        self._settings = folder / "server.properties"
        settings = _settings(folder / "data", self.address, f"127.0.0.1:{controller_port}", partitions)
        self._settings.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        with self.log_file.open("ab") as log:
            command = self._java("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(self._settings))
            formatted = subprocess.run(command, stdout=log, stderr=log, check=False)
        if formatted.returncode != 0:
            raise BrokerFailed("the broker's storage cannot be formatted", where=self._log_end())

    def start(self) -> None:
        assert self._process is None
        seen = self.log_file.stat().st_size
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(self._java("kafka.Kafka", str(self._settings)), stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while _STARTED.encode() not in self.log_file.read_bytes()[seen:]:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise BrokerFailed("the broker did not start", where=self._log_end())
            time.sleep(0.1)

    def stop(self) -> None:
        """As an operator does: it writes its data and says goodbye."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """As a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> KafkaBroker:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _java(self, main_class: str, *arguments: str) -> Sequence[str]:
        return [java_program(), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", self._class_path, main_class, *arguments]

    def _log_end(self) -> str:
        return self.log_file.read_text(errors="replace")[-2000:]


def _settings(data: Path, address: str, controller: str, partitions: int) -> dict[str, object]:
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{address},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{address}",
        "log.dirs": data,
        "num.partitions": partitions,
        "auto.create.topics.enable": "true",
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        # A killed broker is let in again only when its old session has ended.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
    }


def _free_ports(count: int) -> list[int]:
    """Held open until all are known, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for opened in sockets:
            opened.bind(("127.0.0.1", 0))
        return [opened.getsockname()[1] for opened in sockets]
    finally:
        for opened in sockets:
            opened.close()
