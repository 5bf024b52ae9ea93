"""A real `dovetail serve` in a process of its own, with the good queries in its file, and hostile clients."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession

from benchmarks.hostile.arena import HANG_S, LIMITS
from benchmarks.hostile.oracle import wrong_neighbours
from benchmarks.hostile.world import COLUMNS, GOOD_QUERIES, STREAMS, Folders, closing_rows
from benchmarks.options import BenchError

TOKEN = "dvt_" + "5" * 64
START_S = 300.0
HEAD_S, BODY_S = 3, 5
"""Seconds that a client has for its head and its body: short, so that the run need not wait long for slow ones."""
WORKER_MEMORY = "3g"
"""A limit of the operating system on each Python worker: one that asks for more is refused, and may die of it."""


@dataclass(frozen=True)
class Answer:
    """`status` is 0 where the service closed the connection without an answer."""

    status: int
    body: bytes
    seconds: float
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None


class Served:
    """Use as a context: the service ends with it."""

    def __init__(self, root: Path, rows: int) -> None:
        self.folders = Folders(root / "streams")
        self.rows = rows
        self.wave = 0
        self._root = root
        self._log: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()

    def __enter__(self) -> Served:
        token = self._root / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        (self._root / "serve.yaml").write_text(yaml.safe_dump(self._config(token)))
        self._log = (self._root / "serve.log").open("wb")
        command = [
            sys.executable,
            "-c",
            "from dovetail.cli.main import app; app()",
            "serve",
            str(self._root / "serve.yaml"),
        ]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)  # noqa: S603 - our own command
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if self.is_healthy():
                return self
            time.sleep(0.2)
        raise BenchError(f"the service did not start: {(self._root / 'serve.log').read_text()[-2_000:]}")

    def __exit__(self, *_exc: object) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(90)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._log is not None:
            self._log.close()

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def is_healthy(self) -> bool:
        try:
            return self.ask("GET", "/healthz").status == 200
        except OSError:
            return False

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """As a well-behaved client asks; raises `TimeoutError` if nothing comes."""
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_S)
        try:
            data = None if body is None else json.dumps(body)
            sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers}
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(), time.perf_counter() - began, dict(answer.headers))
        except http.client.HTTPException as error:
            return Answer(0, repr(error).encode(), time.perf_counter() - began)
        finally:
            connection.close()

    def run_wave(self) -> bool:
        """The next rows of all streams; whether they were committed in time."""
        self.wave += 1
        self.folders.add_wave(self.wave, self.rows)
        return self.await_rows()

    def await_rows(self) -> bool:
        """Until all rows are part of a committed batch, and all changes, too; False if that takes too long."""
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline:
            if self._is_through():
                return True
            time.sleep(0.2)
        return False

    def _is_through(self) -> bool:
        """Whether the newest file of each stream has been read: watermarks are of its rows, and no change waits."""
        progress = (self.ask("GET", "/v1/progress").json or {}).get("progress") or {}
        newest = {stream: _newest_time(self.folders.good[stream][-1]) for stream in STREAMS}
        reached = {stream["name"]: stream["watermark"] for stream in progress.get("streams", [])}
        is_read = all(reached.get(stream) and _moment(reached[stream]) >= newest[stream] for stream in STREAMS)
        return is_read and all(query["in_effect"] for query in self.queries().values())

    def queries(self) -> dict[str, Mapping[str, Any]]:
        found = (self.ask("GET", "/v1/queries?limit=1000").json or {}).get("queries", [])
        return {query["name"]: query for query in found}

    def wrong_neighbours(self, spark: SparkSession) -> dict[str, str]:
        """As of a session, read page by page; one row closes all first."""
        self.wave += 1
        self.folders.add_good({stream: closing_rows(self.wave) for stream in STREAMS})
        self.await_rows()
        return wrong_neighbours(spark, self.folders, self._answers)

    def _answers(self, name: str) -> pa.Table:
        pages, cursor = [], ""
        while True:
            path = f"/v1/queries/{name}/results?limit=100000{cursor}"
            answer = self.ask("GET", path, None, Accept="application/vnd.apache.arrow.stream")
            pages.append(pa.ipc.open_stream(answer.body).read_all())
            if answer.headers.get("dovetail-has-more", answer.headers.get("Dovetail-Has-More")) != "true":
                return pa.concat_tables(pages)
            cursor = f"&cursor={answer.headers.get('dovetail-next', answer.headers.get('Dovetail-Next'))}"

    def _config(self, token: Path) -> dict[str, object]:
        streams = {
            stream: {
                "format": "parquet",
                "columns": dict(COLUMNS),
                "event_time": "ts",
                "options": {"path": str(self.folders.folder(stream))},
            }
            for stream in STREAMS
        }
        return {
            "checkpoint_dir": str(self._root / "checkpoint"),
            "spark": {
                "spark.master": "local[2]",
                "spark.driver.memory": "3g",
                "spark.executor.pyspark.memory": WORKER_MEMORY,
                "spark.local.dir": str(self._root / "spark"),
            },
            "session": {"partitions": 2, "key_groups": 16, **LIMITS},
            "streams": streams,
            "queries": {name: {"sql": sql} for name, sql in GOOD_QUERIES.items()},
            "listen": {"port": self.port},
            "auth": {"token_file": str(token)},
            "limits": {
                "head_timeout_s": HEAD_S,
                "body_timeout_s": BODY_S,
                "idle_timeout_s": BODY_S,
                "changes_per_s": 1_000,
                "changes_burst": 2_000,
                "reads_per_s": 2_000,
                "reads_burst": 4_000,
            },
        }


def _newest_time(file: Path) -> datetime:
    """Of a file's rows; no stream has lateness, so its watermark comes to be this."""
    newest: datetime = pc.max(pq.read_table(file, columns=["ts"])["ts"]).as_py()
    return newest


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
