"""`make test` and `make test-all`: runs the suites side by side and says in the end what ran.

    python -m tools.run_tests [--all] [pytest arguments]

`--all` also takes what is slow, four times the examples of every hypothesis test, and a Kafka broker.
Spark has a process of its own beside the workers of all other tests: with a JVM in each of two workers, both were seen
to wait for ever in a foreachBatch callback. In a fresh clone kernels are compiled first: each of the three processes
would compile the same ones. What a suite printed is in build/tests; of one that fails it is shown.
In the end a line for every folder says how many of its tests ran and how long they took.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
LOGS = ROOT / "build" / "tests"
TELL_EVERY_S = 20.0
OUTCOMES = ("passed", "failed", "errors", "skipped")
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
_PERCENT = re.compile(r"\[\s*(\d+)%\]")


@dataclass(frozen=True)
class Suite:
    """Tests by their marks, in so many workers; 0: in one process."""

    name: str
    marks: str
    workers: int

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}.log"

    @property
    def report(self) -> Path:
        return LOGS / f"{self.name}.xml"

    def command(self, arguments: Sequence[str]) -> list[str]:
        own = ["-n", str(self.workers), "-m", self.marks, f"--junitxml={self.report}"]
        return [sys.executable, "-m", "pytest", *own, *arguments]


FAST = ((Suite("units", "not slow and not spark", 2),), (Suite("spark", "not slow and spark", 0),))
ALL = ((Suite("units", "not spark", 2),), (Suite("spark", "spark and not kafka", 0), Suite("kafka", "kafka", 0)))
"""Suites that run beside each other, and of each those that run one after the other."""


@dataclass(frozen=True)
class Outcome:
    suite: Suite
    status: int
    seconds: float
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        return self.status == 0

    def __str__(self) -> str:
        counted = "  ".join(f"{self.counts.get(each, 0):>5} {each}" for each in OUTCOMES)
        said = "ok" if self.is_good else f"FAILED ({self.status})"
        return f"{self.suite.name:8}{counted}  {self.seconds / 60:5.1f} min  {said}"


def counts_of(text: str) -> dict[str, int]:
    """What pytest's last line says.

    >>> counts_of("= 1 failed, 20 passed, 3 skipped, 1 error in 3.21s =")
    {'failed': 1, 'passed': 20, 'skipped': 3, 'errors': 1}
    """
    last = next((line for line in reversed(text.splitlines()) if " in " in line and _COUNT.search(line)), "")
    return {"errors" if name == "error" else name: int(count) for count, name in _COUNT.findall(last)}


@dataclass
class Ran:
    """Tests of a folder: how many ran, and their seconds on the clock together."""

    count: int = 0
    seconds: float = 0.0


def ran_by_folder(reports: Iterable[str]) -> dict[str, Ran]:
    """From pytest's XML, the longest first.

    >>> ran_by_folder(['<testsuite><testcase classname="tests.plan.test_a" time="2"/></testsuite>'])
    {'tests/plan': Ran(count=1, seconds=2.0)}
    """
    found: dict[str, Ran] = defaultdict(Ran)
    for report in reports:
        for case in ElementTree.fromstring(report).iter("testcase"):  # noqa: S314 - written by our own pytest
            if case.find("skipped") is None:
                ran = found["/".join(case.get("classname", "").split(".")[:2])]
                ran.count += 1
                ran.seconds += float(case.get("time", 0.0))
    return dict(sorted(found.items(), key=lambda each: -each[1].seconds))


def run(suite: Suite, arguments: Sequence[str]) -> Outcome:
    LOGS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with suite.log.open("w", encoding="utf-8") as log:
        done = subprocess.run(suite.command(arguments), cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False)  # noqa: S603
    counts = counts_of(suite.log.read_text(encoding="utf-8", errors="replace"))
    return Outcome(suite, done.returncode, time.monotonic() - began, counts)


def run_side_by_side(lanes: Iterable[Sequence[Suite]], arguments: Sequence[str]) -> list[Outcome]:
    outcomes: list[Outcome] = []

    def run_lane(suites: Sequence[Suite]) -> None:
        for suite in suites:
            outcomes.append(run(suite, arguments))
            print(outcomes[-1], flush=True)

    lanes = list(lanes)
    threads = [threading.Thread(target=run_lane, args=(suites,)) for suites in lanes]
    for thread in threads:
        thread.start()
    began = told = time.monotonic()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.2)
        if time.monotonic() - told >= TELL_EVERY_S:
            told = time.monotonic()
            running = [suite for suites in lanes for suite in suites if suite not in {each.suite for each in outcomes}]
            print(f"{(told - began) / 60:5.1f} min  {'  '.join(map(_progress, running))}", flush=True)
    order = [suite for suites in lanes for suite in suites]
    return sorted(outcomes, key=lambda each: order.index(each.suite))


def compile_kernels() -> None:
    """In a fresh clone, or one that was only set up: what tests use that users rarely do."""
    stamp = LOGS / "kernels-compiled"
    if stamp.exists():
        return
    began = time.monotonic()
    print("compiling kernels, once", flush=True)
    running = [
        subprocess.Popen([sys.executable, "-m", "tools.compile_kernels", part], cwd=ROOT)  # noqa: S603
        for part in ("rows", "rest")
    ]
    for each in running:
        each.wait()
    print(f"{(time.monotonic() - began) / 60:5.1f} min  kernels are compiled", flush=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    stamp.touch()


def _progress(suite: Suite) -> str:
    text = suite.log.read_text(encoding="utf-8", errors="replace") if suite.log.exists() else ""
    percents = _PERCENT.findall(text)
    return f"{suite.name} {percents[-1]}%" if percents else f"{suite.name} begins"


def main(given: Sequence[str]) -> int:
    is_all = "--all" in given
    arguments = [*(["--hypothesis-profile=many"] if is_all else []), *(each for each in given if each != "--all")]
    for old in (*LOGS.glob("*.log"), *LOGS.glob("*.xml")):
        old.unlink()
    compile_kernels()
    outcomes = run_side_by_side(ALL if is_all else FAST, arguments)
    for outcome in outcomes:
        if not outcome.is_good:
            print(f"\n{'=' * 30} {outcome.suite.name} {'=' * 30}")
            print(outcome.suite.log.read_text(encoding="utf-8", errors="replace"))
    print()
    reports = [outcome.suite.report for outcome in outcomes if outcome.suite.report.exists()]
    for folder, ran in ran_by_folder(report.read_text(encoding="utf-8") for report in reports).items():
        print(f"{folder:24}{ran.count:6} tests {ran.seconds:8.1f} s")
    for outcome in outcomes:
        print(outcome)
    return int(not all(outcome.is_good for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
