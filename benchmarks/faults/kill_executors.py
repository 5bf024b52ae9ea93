"""Executors and Python workers killed while batches run: the session goes on, and its answers are those of batch SQL.

Executors are real ones, JVMs of their own beside the driver (`local-cluster`). There Spark runs a lost task again; on a
`local` master it does not, so a Python worker that is killed there fails the batch, which must run again by itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from rich.markup import escape

from benchmarks.faults.killed_queries import Difference, RowFiles
from benchmarks.faults.programs import PATIENCE_S, Line, ProgramFailed, counted, session_processes
from benchmarks.measure import Steps

ROWS_A_FILE = 3000
EXECUTOR, WORKER, LOCAL_WORKER = "executor", "Python worker", "Python worker of a local master"
DAEMON = "runtime.spark.worker_daemon"
MARK_BY_KIND = {
    EXECUTOR: "CoarseGrainedExecutorBackend",
    WORKER: DAEMON,
    LOCAL_WORKER: DAEMON,
}
LOOK_EVERY_S = 0.05
PAUSE_S = 2.0
"""An executor that was killed is replaced within this."""
CLUSTER = {
    "spark.master": "local-cluster[2,1,1024]",
    # A master gives up on an application whose executors end ten times.
    "spark.deploy.maxExecutorRetries": "-1",
}
OPTIONS = {"partitions": 2, "key_groups": 16, "small_batch_rows": 0}


@dataclass
class ExecutorKills:
    """`ended`: programs that did not come to their end; `wrong`: answers that differ, and queries that were blamed."""

    tried: int = 0
    ended: int = 0
    wrong: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)

    @property
    def figures(self) -> dict[str, Any]:
        return {
            "tried": self.tried,
            "ended": self.ended,
            "wrong": self.wrong,
            "by_kind": dict(sorted(self.by_kind.items())),
        }


def kill_executors(folder: Path, kills: int, seed: int, steps: Steps) -> ExecutorKills:
    """Half of them executors, a quarter their Python workers, a quarter those of a local master."""
    found = ExecutorKills()
    cluster = [EXECUTOR, EXECUTOR, WORKER]
    local = kills // 4
    plans: tuple[tuple[str, list[str], dict[str, str]], ...] = (
        ("cluster", [cluster[i % 3] for i in range(kills - local)], CLUSTER),
        ("local", [LOCAL_WORKER] * local, {}),
    )
    for name, kinds, settings in plans:
        if not kinds:
            continue
        place = folder / name
        place.mkdir(parents=True)
        line = Line(place, RowFiles(place / "data", ROWS_A_FILE, seed), OPTIONS, settings)
        chance = Random(f"executors {seed} {name}")
        with steps.step(f"{len(kinds)} executors and workers killed, {settings.get('spark.master', 'local')}"):
            _run_line(line, kinds, chance, found, steps)
    return found


def _run_line(line: Line, kinds: list[str], chance: Random, found: ExecutorKills, steps: Steps) -> None:
    # Enough to outlast all kills: each costs a batch or two.
    line.files.add(4 + 4 * len(kinds))
    line.files.close()
    try:
        with line.program(None, drains=True) as process:
            for kind in kinds:
                if not _kill_one(line, process, kind, chance):
                    steps.note(f"[red]the program ended before any {kind} could be killed; {found.tried} were[/red]")
                    break
                found.tried += 1
                found.by_kind[kind] += 1
            if process.wait(PATIENCE_S) != 0:
                raise line.failed("ended")
    except (ProgramFailed, subprocess.TimeoutExpired) as failure:
        steps.note(f"[red]{escape(str(failure))}[/red]")
        found.ended += 1
        return
    differences = line.difference()
    wrong = counted(differences)
    found.wrong += wrong.lost + wrong.doubled + len(line.quarantined())
    for name, difference in differences.items():
        if difference != Difference():
            steps.note(f"[red]{name}: {difference}[/red]")
    for name in line.quarantined():
        steps.note(f"[red]{name} is quarantined[/red]")


def _kill_one(line: Line, process: subprocess.Popen[bytes], kind: str, chance: Random) -> bool:
    """In the middle of a batch that begins after another was committed; False if the program ended first."""
    goal, deadline = line.committed + 1, time.monotonic() + PATIENCE_S
    while line.committed < goal or not (victims := _victims(process, kind)):
        if process.poll() is not None:
            return False
        if time.monotonic() > deadline:
            raise line.failed("makes no progress")
        time.sleep(LOOK_EVERY_S)
    time.sleep(chance.uniform(0.0, 0.5))
    try:
        os.kill(chance.choice(victims), signal.SIGKILL)
    except ProcessLookupError:
        return _kill_one(line, process, kind, chance)
    time.sleep(PAUSE_S if kind == EXECUTOR else 0.0)
    return True


def _victims(process: subprocess.Popen[bytes], kind: str) -> list[int]:
    """Of a pool of Python workers the workers, not the process that forks them."""
    found = session_processes(process)
    marked = [pid for pid, command in found.items() if MARK_BY_KIND[kind] in command]
    return marked if kind == EXECUTOR else [pid for pid in marked if _parent(pid) in marked]


def _parent(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[1])
