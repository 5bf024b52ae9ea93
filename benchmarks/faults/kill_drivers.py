"""Drivers killed with their JVM, at random and at chosen moments, and started again on the same checkpoint.

    a line:  start, strike, start, strike ... start and drain -> answers against batch SQL over the same files

The moments of a line are drawn from the seed. A moment that a program does not reach counts as not tried.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

from rich.markup import escape

from benchmarks.faults.killed_queries import Difference, RowFiles
from benchmarks.faults.programs import Line, ProgramFailed, counted
from benchmarks.faults.strike import (
    CHANGING,
    CREATING,
    DROPPING,
    OPENING,
    RUNNING,
    STARTING,
    STOPPING,
    TOLD,
    Moment,
)
from benchmarks.measure import Steps

ROWS_A_FILE = 300
UNREAD_FILES = 10
"""More than a program reads before it stops by itself."""
STEPS = ("before_run", "after_run", "before_state", "before_manifest", "after_manifest", "during_cleanup", TOLD)
PHASES = (RUNNING, CREATING, OPENING, CHANGING, RUNNING, STOPPING, DROPPING, RUNNING, CHANGING, STARTING)
OPTIONS: tuple[dict[str, Any], ...] = (
    {"partitions": 2, "key_groups": 16, "small_batch_rows": 0},
    {"partitions": 2, "key_groups": 16},
    {"partitions": 3, "key_groups": 16, "small_batch_rows": 0, "exchange": "rows"},
    {"partitions": 2, "key_groups": 16, "optimizer": "joint", "keep_intermediates": "always"},
    {"partitions": 1, "key_groups": 16, "merge_fanout": 2, "elastic": True, "max_partitions": 3},
)


@dataclass
class DriverKills:
    tried: int = 0
    missed: int = 0
    failed: int = 0
    difference: Difference = field(default_factory=Difference)
    by_phase: Counter[str] = field(default_factory=Counter)
    answers: int = 0

    @property
    def figures(self) -> dict[str, Any]:
        return {
            "tried": self.tried,
            "lost": self.difference.lost,
            "doubled": self.difference.doubled,
            "failed_starts": self.failed,
            "not_reached": self.missed,
            "by_phase": dict(sorted(self.by_phase.items())),
            "answers_compared": self.answers,
        }


def draw_moment(phase: str, chance: Random) -> Moment:
    if phase == STARTING:
        return Moment(phase, delay_s=chance.uniform(0.0, 4.0))
    if phase == OPENING:
        return Moment(phase, delay_s=chance.uniform(0.0, 2.5))
    if phase == STOPPING:
        return Moment(phase, delay_s=chance.choice((0.0, chance.uniform(0.0, 0.5))))
    if phase in (CREATING, DROPPING):
        return chance.choice((Moment(phase, is_sync=True), Moment(phase, delay_s=chance.uniform(0.0, 0.05))))
    kinds = (
        Moment(phase, step=chance.choice(STEPS), nth=chance.randint(1, 2 if phase == RUNNING else 1)),
        Moment(phase, step=chance.choice((TOLD, "after_manifest"))),
        Moment(phase, is_sync=True, nth=chance.randint(1, 8)),
        Moment(phase, delay_s=chance.uniform(0.0, 1.0)),
    )
    return chance.choice(kinds)


def kill_drivers(folder: Path, kills: int, per_line: int, seed: int, steps: Steps) -> DriverKills:
    found = DriverKills()
    for number in range(-(-kills // per_line)):
        chance = Random(f"drivers {seed} {number}")
        phases = list(islice(cycle(PHASES), number * 3, number * 3 + min(per_line, kills - number * per_line)))
        place = folder / f"line-{number}"
        place.mkdir(parents=True)
        line = Line(place, RowFiles(place / "data", ROWS_A_FILE, seed * 1000 + number), OPTIONS[number % len(OPTIONS)])
        with steps.step(f"drivers killed, checkpoint {number + 1} ({line.options})"):
            _run_line(line, [draw_moment(phase, chance) for phase in phases], found, steps)
    return found


def _run_line(line: Line, moments: list[Moment], found: DriverKills, steps: Steps) -> None:
    try:
        for moment in moments:
            line.files.add(max(0, line.committed + UNREAD_FILES - line.files.count))
            is_killed = line.run(moment)
            steps.note(f"  {moment.text}: {'killed' if is_killed else 'not reached'}, {line.committed} batches")
            found.tried += is_killed
            found.missed += not is_killed
            found.by_phase[moment.phase] += is_killed
        line.files.close()
        line.run(None, drains=True)
    except ProgramFailed as failure:
        steps.note(f"[red]{escape(str(failure))}[/red]")
        found.failed += 1
        found.difference += Difference(lost=1)
        return
    differences = line.difference()
    found.answers += line.answer_count
    found.difference += counted(differences)
    for name, difference in differences.items():
        if difference != Difference():
            steps.note(f"[red]{name}: {difference}[/red]")
    for name in line.quarantined():
        found.difference += Difference(lost=1)
        steps.note(f"[red]{name} is quarantined[/red]")
