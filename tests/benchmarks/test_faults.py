"""The suite `faults` can fail: what is lost, doubled or silently wrong is counted as such."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.faults import unchecked
from benchmarks.faults.damage import How
from benchmarks.faults.kill_drivers import PHASES, draw_moment
from benchmarks.faults.killed_queries import QUERIES, BatchSql, Difference, RowFiles
from benchmarks.faults.try_damage import exact_answers, try_stopped
from benchmarks.report.plots import write_plot
from benchmarks.report.table import figure_rows
from benchmarks.suites import faults

ROOT = Path(__file__).parent.parent.parent
COST = {"ratio": 1.03, "ratios": [1.0, 1.03, 1.1], "power_s": 1.03, "process_s": 1.0, "answers_equal": True}
FIGURES: dict[str, Any] = {
    "suite": "faults",
    "driver": {"tried": 60, "lost": 0, "doubled": 2},
    "executor": {"tried": 24, "ended": 0, "wrong": 0},
    "damage": {"tried": 200, "silent": 1, "told": 120, "exact": 79},
    "unsynced": {"tried": 204, "unopened": 0, "acknowledged_lost": 0},
    "sync_cost_ratio": 1.03,
    "sync_cost": {"smallest": COST, "single": COST},
}


@pytest.fixture
def files(tmp_path: Path) -> RowFiles:
    made = RowFiles(tmp_path / "data", rows=120, seed=3)
    made.add(6)
    made.close()
    return made


def test_lost_and_doubled_rows_are_counted(files: RowFiles) -> None:
    judge = BatchSql(files, {})
    for name, sql in QUERIES.items():
        right = judge.answers(name, sql)
        assert right.total() > 5, name
        assert Difference.of(right, right) == Difference()
        some = next(iter(right))
        assert Difference.of(right - Counter([some]), right) == Difference(lost=1)
        assert Difference.of(right + Counter([some, some]), right) == Difference(doubled=2)


def test_a_query_of_some_batches_is_compared_with_its_own_rows_only(files: RowFiles) -> None:
    judge = BatchSql(files, {(stream, file): file for stream in "ab" for file in range(files.count)})
    sql = QUERIES["pairs"]
    whole = judge.answers_between(sql, 0, 0, None)
    assert whole == judge.answers("pairs", sql)
    early, late = judge.answers_between(sql, 0, 0, 3), judge.answers_between(sql, 0, 3, None)
    assert early + late == whole
    assert judge.answers_between(sql, 3, 3, None) < late


def test_moments_are_those_of_the_seed() -> None:
    drawn = [[draw_moment(phase, Random(f"drivers {seed}")) for phase in PHASES] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_program_that_strikes_is_gone_at_once() -> None:
    program = (
        "import os, sys\n"
        "from benchmarks.faults.strike import Strike\n"
        "strike = Strike({'phase': 'running', 'step': 'after_run', 'nth': 2})\n"
        "strike.on_step('after_run')\n"
        "with strike.phase('running'):\n"
        "    strike.on_step('after_run'); print('once', flush=True)\n"
        "    strike.on_step('after_run'); print('twice', flush=True)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, start_new_session=True, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (-9, b"once\n")


def test_damage_without_checksums_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    monkeypatch.setenv(unchecked.FLAG, str(flag))
    unchecked.leave_out_checksums()
    try:
        expected = exact_answers(tmp_path / "exact")
        outcomes = list(try_stopped(tmp_path, expected, 6, ["bucket"], [How.FLIP]))
    finally:
        unchecked.check_again()
    assert any(outcome.is_silent for outcome in outcomes)
    count = faults.DamageCount()
    for outcome in outcomes:
        count.add(outcome.damage.path, "bucket", outcome.error, is_silent=outcome.is_silent)
    assert count.figures["silent"] > 0
    assert count.figures["silent"] + count.figures["told"] + count.figures["exact"] == len(outcomes)


def test_figures_become_rows_and_a_plot(tmp_path: Path) -> None:
    values = {row.measured: row.value for row in figure_rows(FIGURES)}
    assert values["drivers killed; answers lost; doubled"] == "60; 0; 2"
    assert values["time with syncs and checksums over neither"] == "`smallest` 1.03x; `single` 1.03x"
    write_plot(FIGURES, tmp_path / "plot.svg")
    assert "lost, doubled, wrong or silent: 3" in (tmp_path / "plot.svg").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.spark
def test_the_suite_finds_nothing_wrong(tmp_path: Path) -> None:
    # In a process of its own: it has a Spark session of its own, which it stops.
    kept = tmp_path / "faults.json"
    command = [str(Path(sys.executable).parent / "dovetail"), "bench", "faults", "--quick", "--json", str(kept)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    figures = json.loads(kept.read_text(encoding="utf-8"))
    driver, executor = figures["driver"], figures["executor"]
    assert (driver["lost"], driver["doubled"]) == (0, 0)
    assert driver["tried"] >= 2
    assert (executor["ended"], executor["wrong"]) == (0, 0)
    assert executor["tried"] == faults.QUICK_EXECUTOR_KILLS
