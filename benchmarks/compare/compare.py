"""`make compare BEFORE=REVISION`: is this tree slower than it was at some revision?

    python -m benchmarks.compare.compare REVISION [--pairs 7] [--starts 3] [--only CASE ...] [--json FILE]

Both run in turn, pair after pair and each first in every second pair, so that both see the same good and bad minutes of
the machine. They are started anew a few times: how well Java compiled and where memory lies differ from process to
process, by some 5% either way, and stay as they are while it runs. What counts is the median of all pairs' ratios;
answers must be equal.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import IO, Any

from rich.console import Console
from rich.table import Table

from benchmarks.compare.cases import CompareCase, all_cases
from benchmarks.data.workloads import write_workload

ROOT = Path(__file__).parent.parent.parent
WARM_UP_RUNS = 2


class Revision:
    """A worker that runs one tree's Dovetail."""

    def __init__(self, source: Path, folder: Path, log: IO[bytes]) -> None:
        environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
        self._worker = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "benchmarks.compare.worker", str(folder)],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            text=True,
        )
        runs = Path(self._answer()["runs"])
        if runs.parent != source:
            raise RuntimeError(f"{runs} runs in place of {source}")

    def run(self, case: CompareCase) -> dict[str, Any]:
        assert self._worker.stdin is not None
        print(case.name, file=self._worker.stdin, flush=True)
        return self._answer()

    def close(self) -> None:
        self._worker.communicate(timeout=60)

    def _answer(self) -> dict[str, Any]:
        assert self._worker.stdout is not None
        line = self._worker.stdout.readline()
        if not line:
            raise RuntimeError(f"a revision ended with {self._worker.wait()}; its log says why")
        answer: dict[str, Any] = json.loads(line)
        return answer


Pair = tuple[dict[str, Any], dict[str, Any]]


def run_pairs(case: CompareCase, before: Revision, now: Revision, pairs: int) -> list[Pair]:
    """After runs that warm both up."""
    for _ in range(WARM_UP_RUNS):
        before.run(case), now.run(case)
    measured: list[Pair] = []
    for number in range(pairs):
        if number % 2:
            later = now.run(case)
            measured.append((before.run(case), later))
        else:
            measured.append((before.run(case), now.run(case)))
    return measured


def figures_of(measured: Sequence[Pair]) -> dict[str, Any]:
    is_equal = all(before["answers"] == now["answers"] for before, now in measured)
    ratios = [now["seconds"] / before["seconds"] for before, now in measured]
    return {
        "before_s": round(median(before["seconds"] for before, _ in measured), 4),
        "now_s": round(median(now["seconds"] for _, now in measured), 4),
        "ratio": round(median(ratios), 3),
        "ratios": sorted(round(ratio, 3) for ratio in ratios),
        "cpu_ratio": round(median(now["cpu_s"] / before["cpu_s"] for before, now in measured), 3),
        "answers_equal": is_equal,
    }


def run(
    revision: str, cases: Sequence[CompareCase], pairs: int, starts: int, folder: Path, console: Console
) -> dict[str, Any]:
    source = folder / "before"
    source.mkdir()
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True)  # noqa: S603, S607
    subprocess.run(["tar", "x", "-C", str(source)], input=archive.stdout, check=True)  # noqa: S603, S607
    for case in cases:
        write_workload(case.workload, case.files(folder).folder)
    measured: dict[str, list[Pair]] = {case.name: [] for case in cases}
    with (folder / "log").open("wb") as log:
        for start in range(starts):
            before, now = (Revision(each / "src", folder, log) for each in (source, ROOT))
            for case in cases:
                measured[case.name] += run_pairs(case, before, now, pairs)
                ratio = figures_of(measured[case.name])["ratio"]
                console.print(f"{case.name}: {ratio} after start {start + 1} of {starts}", highlight=False)
            before.close()
            now.close()
    return {
        "before": revision,
        "pairs": pairs * starts,
        "starts": starts,
        **{name: figures_of(pairs) for name, pairs in measured.items()},
    }


def table(figures: dict[str, Any]) -> Table:
    shown = Table("case", f"{figures['before']}, s", "now, s", "ratio", "of pairs", "CPU", "answers")
    for name, each in figures.items():
        if isinstance(each, dict):
            spread = f"{each['ratios'][0]:.2f} to {each['ratios'][-1]:.2f}"
            said = "equal" if each["answers_equal"] else "[red]DIFFER[/red]"
            seconds = (f"{each['before_s']:.3f}", f"{each['now_s']:.3f}")
            shown.add_row(name, *seconds, f"{each['ratio']:.3f}", spread, f"{each['cpu_ratio']:.3f}", said)
    return shown


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision")
    parser.add_argument("--pairs", type=int, default=7, help="after each start")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[case.name for case in all_cases()], help="these cases")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(given)
    cases = [case for case in all_cases() if not arguments.only or case.name in arguments.only]
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="dovetail-compare-"))
    try:
        figures = run(arguments.revision, cases, arguments.pairs, arguments.starts, folder, console)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(table(figures))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return int(not all(each["answers_equal"] for each in figures.values() if isinstance(each, dict)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
