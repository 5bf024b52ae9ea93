from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

SECONDS = 12
END_TIMEOUT_S = 900
"""Generous, because other tests may keep the machine busy: then even Spark's start takes a minute."""


@pytest.fixture(scope="module")
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def config_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("config")


def environment(temporary_folder: Path, config_folder: Path) -> dict[str, str]:
    given = {name: text for name, text in os.environ.items() if not name.startswith("DOVETAIL_")}
    own = {"TMPDIR": str(temporary_folder), "XDG_CONFIG_HOME": str(config_folder)}
    return {**given, **own, "PYTHONPATH": os.pathsep.join(sys.path)}


def start_demo(temporary_folder: Path, config_folder: Path) -> subprocess.Popen[str]:
    """A process of its own, because the demo ends its Spark; and a group of its own, as in a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "dovetail.cli.main", "demo", "--seconds", str(SECONDS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=temporary_folder,
        env=environment(temporary_folder, config_folder),
        start_new_session=True,
    )


def end_of(demo: subprocess.Popen[str]) -> str:
    assert demo.stdout is not None
    watchdog = threading.Timer(END_TIMEOUT_S, os.killpg, (demo.pid, signal.SIGKILL))
    watchdog.start()
    # Not communicate(): it would miss what readline() has taken from the pipe already.
    printed = demo.stdout.read()
    demo.wait()
    watchdog.cancel()
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


@dataclass(frozen=True)
class Watched:
    """What a short demo printed, and what the commands that it names printed in a second terminal meanwhile."""

    demo: str
    created: str
    tailed: str
    dropped: str


@pytest.fixture(scope="module")
def watched(temporary_folder: Path, config_folder: Path) -> Watched:
    demo = start_demo(temporary_folder, config_folder)
    answers = []
    try:
        before, create, tail = invited_commands(demo)
        for command in (create, f"{tail} --limit 5", tail.replace("query tail", "query drop")):
            terminal = subprocess.run(
                ["/bin/sh", "-c", command],
                capture_output=True,
                text=True,
                check=False,
                timeout=END_TIMEOUT_S,
                env=environment(temporary_folder, config_folder),
            )
            assert terminal.returncode == 0, terminal.stderr
            answers.append(terminal.stdout)
    except BaseException:
        # With a query of a visitor the demo would go on.
        os.killpg(demo.pid, signal.SIGKILL)
        raise
    return Watched(before + end_of(demo), *answers)


def invited_commands(demo: subprocess.Popen[str]) -> tuple[str, str, str]:
    """What the demo printed before, and the commands that it invites to."""
    assert demo.stdout is not None
    before = ""
    while "in a second terminal" not in (line := demo.stdout.readline()):
        assert line, "the demo ended too early"
        before += line
    text = ""
    while "query tail" not in text:
        text += demo.stdout.readline()
    create, tail = text.split(" query tail ")
    *create_lines, command = create.splitlines()
    return before, "\n".join(create_lines).strip(), f"{command.strip()} query tail {tail.strip()}"


@pytest.fixture(scope="module")
def output(watched: Watched) -> str:
    return watched.demo


@pytest.mark.spark
@pytest.mark.parametrize("query", ["Q1", "Q2", "Q3"])
def test_each_demo_query_gives_results(output: str, query: str) -> None:
    totals = re.findall(rf"^{query} .*: ([\d,]+) answers$", output, flags=re.MULTILINE)
    assert [int(total.replace(",", "")) > 0 for total in totals] == [True], output


@pytest.mark.spark
def test_queries_are_created_and_dropped_while_the_demo_runs(output: str) -> None:
    changes = re.findall(r"(\d+\.\d) s +(Q\d) (created|dropped):", output)
    assert [(query, change) for _, query, change in changes] == [
        ("Q1", "created"),
        ("Q2", "created"),
        ("Q3", "created"),
        ("Q1", "dropped"),
    ]
    assert [float(at) > 0 for at, *_ in changes[1:]] == [True] * 3


@pytest.mark.spark
def test_a_second_terminal_asks_a_question_of_its_own(watched: Watched) -> None:
    assert "mine is accepted" in watched.created
    head, *rows = watched.tailed.splitlines()
    assert (head.split(), len(rows)) == (["usr_id", "vid", "comment"], 5)
    assert all("love it" in row for row in rows)
    assert "mine is dropped" in watched.dropped
    assert "mine created from outside" in watched.demo
    assert re.search(r"mine asked from outside: [\d,]+ answers", watched.demo)


@pytest.mark.spark
def test_first_answers_are_shown_and_what_sharing_saves(output: str) -> None:
    for query, column in (("Q1", "length"), ("Q2", "comment"), ("Q3", "reaction")):
        assert re.search(rf"the first answers of {query}:\n +usr_id +vid .*{column}", output), output
    saved = re.findall(r"In one plan, sharing saves (\d+)% of the work", output)
    assert [int(share) > 0 for share in saved] == [True], output


@pytest.mark.spark
def test_the_demo_says_what_it_does_from_its_first_line_on(output: str) -> None:
    first, second, *_ = output.splitlines()
    assert first.startswith("Dovetail: three join queries")
    assert "Starting Spark" in second
    assert output.index("Waiting for the first rows") < output.index("has its first answers")
    assert "Ending Spark" in output
    assert output.splitlines()[-1].endswith("Done: nothing was left on disk")
    assert "Traceback" not in output
    assert " ERROR " not in output
    assert " WARN " not in output


@pytest.mark.spark
def test_the_demo_leaves_no_files_behind(output: str, temporary_folder: Path, config_folder: Path) -> None:
    assert output
    assert [path.name for path in temporary_folder.iterdir()] == []
    assert [path for path in config_folder.rglob("*") if path.is_file()] == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["Starting Spark", "Waiting for", "Q1 created"])
def test_ctrl_c_ends_the_demo_at_any_moment_and_leaves_nothing_behind(tmp_path: Path, moment: str) -> None:
    for name in ("tmp", "config"):
        (tmp_path / name).mkdir()
    demo = start_demo(tmp_path / "tmp", tmp_path / "config")
    assert demo.stdout is not None
    while moment not in (line := demo.stdout.readline()):
        assert line, "the demo ended too early"
    os.killpg(demo.pid, signal.SIGINT)
    printed = end_of(demo).splitlines()
    assert [line for line in printed if re.search("Error|Exception|Traceback|WARN|    at ", line)] == []
    assert len(printed) < 30
    assert list((tmp_path / "tmp").iterdir()) == []
    assert [path for path in (tmp_path / "config").rglob("*") if path.is_file()] == []
    assert is_group_gone(demo.pid)
