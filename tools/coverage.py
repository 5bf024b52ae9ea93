"""`make coverage`: the fast tests under a tracer, and the branch coverage of every room of the package.

    python -m tools.coverage [pytest arguments]

Compiled kernels are left out: a tracer does not see into them, and tests hold each to nested loops. What Spark's Python
workers run is not seen either; the same operators run in this process under the in-process session.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.run_tests import FAST, ROOT, run_side_by_side

PACKAGE = ROOT / "src" / "dovetail"
DATA = ROOT / "build" / "coverage"
ENOUGH = 85.0


@dataclass
class Room:
    """Lines and branches of a folder's own files: those that ran, and all."""

    ran: int = 0
    all: int = 0

    @property
    def percent(self) -> float:
        return 100.0 * self.ran / self.all if self.all else 100.0


def rooms_of(files: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, Room]:
    """By folder of the package, from the JSON report of coverage.

    >>> file = {"summary": {"covered_lines": 8, "covered_branches": 1, "num_statements": 10, "num_branches": 2}}
    >>> rooms_of({"src/dovetail/kernels/match/a.py": file, "src/dovetail/kernels/match/b.py": file})["kernels/match"]
    Room(ran=18, all=24)
    """
    rooms: dict[str, Room] = defaultdict(Room)
    for path, file in files.items():
        folder = Path(path).parent.as_posix().partition("dovetail")[2].strip("/")
        summary = file["summary"]
        rooms[folder].ran += summary["covered_lines"] + summary["covered_branches"]
        rooms[folder].all += summary["num_statements"] + summary["num_branches"]
    return dict(sorted(rooms.items()))


def main(arguments: Sequence[str]) -> int:
    DATA.mkdir(parents=True, exist_ok=True)
    for old in DATA.glob(".coverage*"):
        old.unlink()
    os.environ["COVERAGE_FILE"] = str(DATA / ".coverage")
    # One suite after the other: each adds to what the one before it found.
    traced = ["--cov=dovetail", "--cov-branch", "--cov-report=", "--cov-append"]
    outcomes = run_side_by_side([[suite for lane in FAST for suite in lane]], [*traced, *arguments])
    report = DATA / "coverage.json"
    subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", str(report)], cwd=ROOT, check=True)  # noqa: S603
    found = json.loads(report.read_text(encoding="utf-8"))
    rooms = rooms_of(found["files"])
    for name, room in rooms.items():
        mark = "<" if room.percent < ENOUGH else " "
        print(f"{room.percent:6.1f}% {mark} {name or '.'}")
    whole = Room(sum(room.ran for room in rooms.values()), sum(room.all for room in rooms.values()))
    print(f"< under {ENOUGH:.0f}%")
    print(f"branch coverage: {whole.percent:.1f}% of {whole.all:,} lines and branches")
    return int(not all(outcome.is_good for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
