"""`make coverage`: the fast tests under a tracer, and the branch coverage of every room of the package.

    python -m tools.coverage [--page] [pytest arguments]

`--page` only writes what the last run found into CONTRIBUTING.md, which `make coverage` does, too. A room under 85% is
named there with the reason that stands here.

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
REPORT = DATA / "coverage.json"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- coverage: begin, by `make coverage` -->", "<!-- coverage: end -->"
ENOUGH = 85.0
REASONS = {
    "cli": "`serve` is a program of its own, run by slow tests and by `make first-hour`",
    "demo": "the live view runs as a program of its own, in a slow test and by `make first-hour`",
    "runtime/spark": "half of it runs in Spark's Python workers and their daemon, where no tracer is",
}
"""Why a room is under 85%."""


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


def table_of(rooms: Mapping[str, Room]) -> str:
    """The page's part on coverage: all rooms, the least covered first."""
    whole = _whole(rooms)
    lines = [
        f"**{whole.percent:.1f}%** of {whole.all:,} lines and branches run in `make test`, by `make coverage`.",
        "",
        "| room | covered | |",
        "|---|---|---|",
    ]
    for name, room in sorted(rooms.items(), key=lambda each: (each[1].percent, each[0])):
        reason = REASONS.get(name, "no reason is known yet") if room.percent < ENOUGH else ""
        lines.append(f"| `{name or '.'}` | {room.percent:.1f}% | {reason} |")
    return "\n".join(lines)


def _whole(rooms: Mapping[str, Room]) -> Room:
    return Room(sum(room.ran for room in rooms.values()), sum(room.all for room in rooms.values()))


def write_page(rooms: Mapping[str, Room]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table_of(rooms)}\n{END}{after}", encoding="utf-8")


def run_traced(arguments: Sequence[str]) -> bool:
    """Run the fast suites one after the other, each adding to what the one before it found; whether all pass."""
    DATA.mkdir(parents=True, exist_ok=True)
    for old in DATA.glob(".coverage*"):
        old.unlink()
    os.environ["COVERAGE_FILE"] = str(DATA / ".coverage")
    traced = ["--cov=dovetail", "--cov-branch", "--cov-report=", "--cov-append"]
    outcomes = run_side_by_side([[suite for lane in FAST for suite in lane]], [*traced, *arguments])
    subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", str(REPORT)], cwd=ROOT, check=True)  # noqa: S603
    return all(outcome.is_good for outcome in outcomes)


def main(arguments: Sequence[str]) -> int:
    is_good = "--page" in arguments or run_traced(arguments)
    rooms = rooms_of(json.loads(REPORT.read_text(encoding="utf-8"))["files"])
    for name, room in rooms.items():
        mark = "<" if room.percent < ENOUGH else " "
        print(f"{room.percent:6.1f}% {mark} {name or '.'}")
    whole = _whole(rooms)
    print(f"< under {ENOUGH:.0f}%")
    print(f"branch coverage: {whole.percent:.1f}% of {whole.all:,} lines and branches")
    write_page(rooms)
    unexplained = [name for name, room in rooms.items() if room.percent < ENOUGH and name not in REASONS]
    if unexplained:
        print(f"without a reason in tools/coverage.py: {', '.join(unexplained)}")
    return int(not is_good or bool(unexplained))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
