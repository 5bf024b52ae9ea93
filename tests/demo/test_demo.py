from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 20


@pytest.fixture(scope="module")
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def output(temporary_folder: Path) -> str:
    """What a short demo prints when nobody watches; a process of its own, because it ends its Spark."""
    run = subprocess.run(
        [sys.executable, "-m", "dovetail.cli.main", "demo", "--seconds", str(SECONDS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS + 240,
        cwd=temporary_folder,
        env={
            **os.environ,
            "TMPDIR": str(temporary_folder),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "COLUMNS": "120",
        },
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


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
