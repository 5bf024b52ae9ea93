"""Processes killed for real, by SIGKILL: the driver again and again, and an executor under the driver's eyes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.spark]

SQL_BY_NAME = {
    "pairs": (
        "SELECT a.id AS a_id, b.id AS b_id FROM a JOIN b ON a.k = b.k "
        "AND b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 2 SECONDS WHERE a.x > 20"
    ),
    "triples": (
        "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM a JOIN b ON a.k = b.k "
        "AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 1 SECOND "
        "JOIN a c ON b.x = c.x AND c.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts WHERE c.k < 40"
    ),
}


PROGRAM = Path(__file__).parent / "joining_program.py"
DECLARING_PROGRAM = Path(__file__).parent / "declaring_program.py"
BATCHES = 16
ROWS = 3000
PATIENCE_S = 300.0


@pytest.fixture
def data(tmp_path: Path) -> Path:
    chance = np.random.default_rng(3)
    for name in ("a", "b"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for batch in range(BATCHES):
            times = 1_700_000_000_000_000 + batch * 1_000_000 + chance.integers(0, 1_000_000, ROWS)
            table = pa.table(
                {
                    "id": pa.array(np.arange(batch * ROWS, (batch + 1) * ROWS)),
                    "ts": pa.array(times).view(pa.timestamp("us", tz="UTC")),
                    "k": pa.array(chance.integers(0, 3000, ROWS).astype(np.int32)),
                    "x": pa.array(chance.integers(0, 2000, ROWS).astype(np.int32)),
                }
            )
            path = tmp_path / "data" / name / f"{batch:03d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """A test that fails leaves a program running: kill it with all it started."""
    yield
    for process in STARTED:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    STARTED.clear()


STARTED: list[subprocess.Popen[bytes]] = []


def start(
    master: str, data: Path, checkpoint: Path, program: Path = PROGRAM, queries: dict[str, str] = SQL_BY_NAME
) -> subprocess.Popen[bytes]:
    # A session of its own, so that the JVM and the Python workers can be killed with the driver.
    log = (checkpoint.parent / "program.log").open("ab")
    process = subprocess.Popen(
        [sys.executable, str(program), master, str(data), str(checkpoint), json.dumps(queries)],
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    STARTED.append(process)
    return process


def committed(checkpoint: Path) -> int:
    return len(list((checkpoint / "manifests").glob("b*.json")))


def wait_until(is_true: Callable[[], bool], process: subprocess.Popen[bytes]) -> bool:
    """False when the process ended first."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        if process.poll() is not None:
            return False
        assert time.monotonic() < deadline, "the program makes no progress"
        time.sleep(0.05)
    return True


def finish(process: subprocess.Popen[bytes], checkpoint: Path) -> None:
    assert process.wait(PATIENCE_S) == 0, (checkpoint.parent / "program.log").read_text()[-4000:]


def assert_answers_are_batch_sql(data: Path, checkpoint: Path) -> None:
    oracle = duckdb.connect()
    for name in ("a", "b"):
        oracle.execute(f"CREATE VIEW {name} AS SELECT * FROM '{data}/{name}/*.parquet'")
    for name, sql in SQL_BY_NAME.items():
        expected = Counter(oracle.execute(sql).fetchall())
        got = Counter(oracle.execute(f"SELECT * FROM '{checkpoint}-answers/{name}/*.parquet'").fetchall())
        assert sum(expected.values()) > 1000
        assert got == expected, name


def test_a_driver_that_is_killed_again_and_again_answers_everything_once(data: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    chance = random.Random(5)
    kills = 0
    while kills < 3:
        goal = committed(checkpoint) + chance.randint(1, 4)
        process = start("local[2]", data, checkpoint)
        if not wait_until(lambda goal=goal: committed(checkpoint) >= goal, process):  # type: ignore[misc]
            break
        time.sleep(chance.random() * 0.4)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    assert kills == 3
    finish(start("local[2]", data, checkpoint), checkpoint)
    assert_answers_are_batch_sql(data, checkpoint)


def test_a_stream_that_is_declared_between_kills_costs_no_answer(data: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    alone = {"alone": "SELECT l.id FROM b l JOIN b r ON l.k = r.k AND l.x = r.x WITHIN 1 HOUR"}
    for queries, goal in ((alone, 3), ({**alone, **SQL_BY_NAME}, 6), ({**alone, **SQL_BY_NAME}, 9)):
        process = start("local[2]", data, checkpoint, DECLARING_PROGRAM, queries)
        assert wait_until(lambda goal=goal: committed(checkpoint) >= goal, process)  # type: ignore[misc]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finish(start("local[2]", data, checkpoint, DECLARING_PROGRAM, {**alone, **SQL_BY_NAME}), checkpoint)
    assert_answers_are_batch_sql(data, checkpoint)


def test_an_executor_that_is_killed_costs_no_answer(data: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    process = start("local-cluster[2,1,1024]", data, checkpoint)
    for goal in (3, 8):
        assert wait_until(lambda goal=goal: committed(checkpoint) >= goal, process)  # type: ignore[misc]
        executors = executors_of(process.pid)
        assert executors, f"no executor runs after {goal} batches"
        os.kill(executors[0], signal.SIGKILL)
    finish(process, checkpoint)
    assert_answers_are_batch_sql(data, checkpoint)


def executors_of(driver: int) -> list[int]:
    """Process ids of the executors among all that the driver's session runs."""
    listed = subprocess.run(["ps", "-ww", "-e", "-o", "pid,sid,args"], capture_output=True, text=True, check=True)  # noqa: S607
    found = []
    for line in listed.stdout.splitlines()[1:]:
        pid, session, args = line.split(None, 2)
        if int(session) == driver and "CoarseGrainedExecutorBackend" in args:
            found.append(int(pid))
    return found
