from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SECONDS = 20
END_TIMEOUT_S = SECONDS + 240
"""Generous, because other tests may keep the machine busy."""


@pytest.fixture(scope="module")
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


def start_demo(temporary_folder: Path) -> subprocess.Popen[str]:
    """A process of its own, because the demo ends its Spark; and a group of its own, as in a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "dovetail.cli.main", "demo", "--seconds", str(SECONDS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=temporary_folder,
        env={**os.environ, "TMPDIR": str(temporary_folder), "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )


def end_of(demo: subprocess.Popen[str]) -> str:
    try:
        printed, _ = demo.communicate(timeout=END_TIMEOUT_S)
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
    assert demo.returncode == 0, printed
    return printed


def is_group_gone(group: int) -> bool:
    """Spark's Python workers notice the end of their JVM a moment after it."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.fixture(scope="module")
def output(temporary_folder: Path) -> str:
    """What a short demo prints when nobody watches."""
    return end_of(start_demo(temporary_folder))


@pytest.mark.spark
@pytest.mark.parametrize("query", ["Q1", "Q2", "Q3"])
def test_each_demo_query_gives_results(output: str, query: str) -> None:
    totals = re.findall(rf"^{query} .*: ([\d,]+) results$", output, flags=re.MULTILINE)
    assert [int(total.replace(",", "")) > 0 for total in totals] == [True], output


@pytest.mark.spark
def test_queries_are_created_and_dropped_while_the_demo_runs(output: str) -> None:
    changes = re.findall(r"(\d+\.\d) s +(Q\d) (created|dropped)", output)
    assert [(query, change) for _, query, change in changes] == [
        ("Q1", "created"),
        ("Q2", "created"),
        ("Q3", "created"),
        ("Q1", "dropped"),
    ]
    assert [float(at) > 0 for at, *_ in changes[1:]] == [True] * 3


@pytest.mark.spark
def test_the_demo_leaves_no_files_behind(output: str, temporary_folder: Path) -> None:
    assert output
    assert [path.name for path in temporary_folder.iterdir()] == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["Starting Spark", "Waiting for", "Q1 created"])
def test_ctrl_c_ends_the_demo_at_any_moment_and_leaves_nothing_behind(tmp_path: Path, moment: str) -> None:
    demo = start_demo(tmp_path)
    assert demo.stdout is not None
    while moment not in (line := demo.stdout.readline()):
        assert line, "the demo ended too early"
    os.killpg(demo.pid, signal.SIGINT)
    end_of(demo)
    assert [path.name for path in tmp_path.iterdir()] == []
    assert is_group_gone(demo.pid)
