"""A service on Spark from start to stop and again: streams, queries, answers and owners are back, nothing is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from textwrap import dedent

import httpx
import pytest

from dovetail.service.config.config import load_config
from dovetail.service.serve import StopSignal, serve

pytestmark = pytest.mark.spark

PATIENCE_S = 60
JOIN = "SELECT v.usr, c.text FROM views v JOIN comments c ON v.usr = c.usr WITHIN 10 SECONDS"


class AskedStop(StopSignal):
    """Asked by the test: signals are the main thread's."""

    def listen(self):
        pass

    def ask(self):
        self._made.set()


class Files:
    """The folders that the streams read; each `add` is one file, so one batch."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        for name in ("views", "comments"):
            (folder / name).mkdir()
        self.config = folder / "serve.yaml"
        self.config.write_text(
            dedent("""
            checkpoint_dir: ./checkpoint
            trigger: 200 milliseconds
            session: {partitions: 2, key_groups: 16}
            streams:
              views:
                format: json
                columns: {usr: bigint, ts: timestamp}
                event_time: ts
                lateness: 1 hour
                options: {path: ./views}
              comments:
                format: json
                columns: {usr: bigint, text: string, ts: timestamp}
                event_time: ts
                lateness: 1 hour
                options: {path: ./comments}
            queries:
              of_the_file:
                sql: SELECT v.usr FROM views v JOIN comments c ON v.usr = c.usr WITHIN 5 SECONDS
            listen: {port: 0}
            """)
        )

    def add(self, *users):
        self.count += 1
        for name in ("views", "comments"):
            lines = [json.dumps({"usr": usr, "text": f"t{usr}", "ts": "2026-01-01T00:00:00Z"}) for usr in users]
            draft = self.folder / f".{name}{self.count}"
            draft.write_text("\n".join(lines))
            draft.replace(self.folder / name / f"{self.count:04d}.json")


@contextmanager
def serving(spark, files, token=None):
    """The service in a thread; yields a client with the token that it showed, or with the given one."""
    said, stop, failures = [], AskedStop(), []

    def run():
        try:
            serve(spark, load_config(files.config), said.append, stop)
        except Exception as error:  # noqa: BLE001 - the test shows it
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        await_that(lambda: failures or len(said) >= (1 if token else 2))
        assert not failures, failures
        url = re.search(r"http://\S+", said[0])[0]
        token = token or said[1].rsplit(" ", 1)[1]
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S) as client:
            client.token = token
            # It answers before its session runs.
            await_that(lambda: client.get("/healthz").status_code == 200)
            yield client
    finally:
        stop.ask()
        thread.join(PATIENCE_S)
    assert (failures, said[-1], thread.is_alive()) == ([], "stopped", False)


def await_that(condition):
    ends_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < ends_at, "it took too long"
        time.sleep(0.05)


def users_of(client, name="asked"):
    return sorted(row["usr"] for row in client.get(f"/v1/queries/{name}/results").json()["rows"])


def batches_of(lines):
    """Users of each `batch` event, until the stream ends."""
    for line in lines:
        if line.startswith("data: ") and '"row_count"' in line:
            yield [row["usr"] for row in json.loads(line.removeprefix("data: "))["rows"]]


def test_a_service_is_asked_stopped_and_started_again(spark, tmp_path):
    files = Files(tmp_path)
    with serving(spark, files) as client:
        files.add(1)
        await_that(lambda: users_of(client, "of_the_file") == [1])
        # No row comes meanwhile: a batch of its own has the change.
        made = client.post("/v1/queries?wait=30", json={"sql": JOIN, "name": "asked"})
        assert made.status_code == 201, made.text
        files.add(2, 3)
        with client.stream("GET", "/v1/queries/asked/events?from_batch=0") as response:
            assert sorted(next(batches_of(response.iter_lines()))) == [2, 3]
        assert users_of(client) == [2, 3]
        stream = {"name": "ticks", "format": "rate", "event_time": "timestamp", "options": {"rowsPerSecond": 1}}
        assert client.post("/v1/streams", json=stream).status_code == 201
        committed = client.get("/v1/status").json()["committed_batch"]
        files.add(4)
        token = client.token
    files.add(5)
    with serving(spark, files, token) as client:
        await_that(lambda: users_of(client) == [2, 3, 4, 5])
        listed = {query["name"]: query for query in client.get("/v1/queries").json()["queries"]}
        assert {name: (query["state"], query["owner"]) for name, query in listed.items()} == {
            "of_the_file": ("running", None),
            "asked": ("running", "first-admin"),
        }
        assert listed["asked"]["created_batch"] == made.json()["created_batch"]
        streams = [stream["name"] for stream in client.get("/v1/streams").json()["streams"]]
        assert streams == ["comments", "ticks", "views"]
        with client.stream("GET", "/v1/queries/asked/events", headers={"Last-Event-ID": str(committed)}) as response:
            found: list[int] = []
            for users in batches_of(response.iter_lines()):
                found += users
                if len(found) == 2:
                    break
        assert sorted(found) == [4, 5]


@pytest.mark.slow
def test_sigterm_finishes_the_batch_and_exits_with_zero(tmp_path):
    files = Files(tmp_path)
    files.add(1)
    token = None
    for round_number in range(2):
        process = subprocess.Popen(
            [sys.executable, "-m", "dovetail.cli.main", "serve", str(files.config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            url = re.search(r"http://\S+", process.stdout.readline())[0]
            token = token or process.stdout.readline().rsplit(" ", 1)[1].strip()
            with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S) as client:
                await_that(lambda: client.get("/healthz").status_code == 200)
                await_that(lambda: users_of(client, "of_the_file") == list(range(1, round_number + 2)))  # noqa: B023
                files.add(round_number + 2)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
            assert process.stdout.read().splitlines()[-1] == "stopped"
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
