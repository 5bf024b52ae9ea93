"""`make mutants`: plants one bug at a time into a copy of the repository and shows that the tests find each.

    python -m tools.mutants [WORD ...] [--workers N]

    tools/mutants.txt   the bugs: a name, a file, the line to change, what it becomes, and who finds it

`tests` are tests of `make test`, of which one must fail; `scenarios` are kinds of random scenarios (`any`: all of them
in their shares), of which one of the first hundred must fail: `make test` draws more, others with every commit. A bug
costs seconds. One that is not found is a hole in the tests, one whose line is gone is a stale entry; both fail the run.
Every bug has a copy of its own, which is removed. Words choose the bugs whose name or file has one of them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tools" / "mutants.txt"
COPIED = ("src", "tests", "benchmarks", "tools", "docs", "examples", "pyproject.toml", "README.md", "ARCHITECTURE.md")
TESTS, SCENARIOS = "tests", "scenarios"
FAILED = 1
"""What pytest, and the scenarios, end with when something ran and failed."""
LONGEST_S = 600
_PYTEST = (
    *("-m", "pytest", "-q", "-x", "-m", "not slow and not spark", "--hypothesis-seed=0"),
    *("--hypothesis-profile=first",),
    # Plugins are loaded by name: the others take as long as the tests.
    *("-p", "_hypothesis_pytestplugin", "-p", "anyio", "-p", "no:cacheprovider", "-o", "addopts="),
    *("--import-mode=importlib", "--doctest-modules", "-rf"),
)
_FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A bug: one piece of text of one file, which must be there once, what stands there instead, and who finds it."""

    name: str
    file: str
    line: str
    becomes: str
    tests: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.line == self.becomes:
            raise ValueError(f"{self.name}: nothing changes")
        if bool(self.tests) == bool(self.scenarios):
            raise ValueError(f"{self.name}: who finds it, tests or scenarios?")

    def plant(self, root: Path) -> None:
        path = root / "src" / "dovetail" / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.line) != 1:
            raise ValueError(f"{self.name}: {self.file} has its line {text.count(self.line)} times, not once")
        path.write_text(text.replace(self.line, self.becomes), encoding="utf-8")

    def command(self) -> list[str]:
        if self.tests:
            return [sys.executable, *_PYTEST, *self.tests]
        return [sys.executable, "-m", "tools.first_failure", *self.scenarios]


@dataclass(frozen=True)
class Verdict:
    mutant: Mutant
    is_found: bool
    seconds: float
    said: str

    def __str__(self) -> str:
        by = f"  by {self.said}" if self.is_found else ""
        return f"{'found    ' if self.is_found else 'NOT FOUND'} {self.seconds:6.1f} s  {self.mutant.name}{by}"


def read_mutants(text: str) -> Iterator[Mutant]:
    """Paragraphs: the name in a line, then `field: value` for each field; `#` begins a comment."""
    for paragraph in text.split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line.strip() and not line.startswith("#")]
        if not lines:
            continue
        name, *fields = lines
        given = dict(line.split(": ", 1) for line in fields)
        if tuple(given) not in {("file", "line", "becomes", finder) for finder in (TESTS, SCENARIOS)}:
            raise ValueError(f"{name}: fields are file, line, becomes, and tests or scenarios, not {', '.join(given)}")
        tests = tuple(given.get(TESTS, "").split())
        kinds = tuple(kind.strip() for kind in given.get(SCENARIOS, "").split(",") if kind.strip())
        yield Mutant(name, given["file"], given["line"], given["becomes"], tests, kinds)


def copy_tree(to: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            # Compiled kernels come along with their times: only the mutated file is compiled again.
            shutil.copytree(source, to / name, copy_function=shutil.copy2)
        else:
            shutil.copy2(source, to / name)


def try_out(mutant: Mutant) -> Verdict:
    """Whether somebody fails with the bug planted, and who; else the end of what was printed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dovetail-mutant-") as folder:
        root = Path(folder)
        copy_tree(root)
        mutant.plant(root)
        try:
            run = subprocess.run(  # noqa: S603 - our own tests in our own copy
                mutant.command(),
                cwd=root,
                env={**os.environ, **_settings(root)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=LONGEST_S,
            )
        except subprocess.TimeoutExpired:
            return Verdict(mutant, True, time.monotonic() - began, "never ending")
    failed = _FAILED_TEST.search(run.stdout)
    said = failed[1] if failed else run.stdout.strip().splitlines()[-1] if mutant.scenarios else run.stdout[-3000:]
    # Broken elsewhere than by a test is no find.
    return Verdict(
        mutant, run.returncode == FAILED and bool(failed or mutant.scenarios), time.monotonic() - began, said
    )


def _settings(root: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "DOVETAIL_SEED": "0",
    }


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="plant the bugs whose name or file has one of these")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="bugs at the same time")
    options = parser.parse_args(given)
    mutants = [
        each
        for each in read_mutants(LIST.read_text(encoding="utf-8"))
        if not options.words or any(word in each.name or word in each.file for word in options.words)
    ]
    survivors = []
    with ThreadPoolExecutor(options.workers) as pool:
        for number, verdict in enumerate(pool.map(try_out, mutants), 1):
            print(f"{number:3}/{len(mutants)}  {verdict}", flush=True)
            if not verdict.is_found:
                survivors.append(verdict)
    for verdict in survivors:
        print(f"\n{'=' * 20} {verdict.mutant.name} {'=' * 20}\n{verdict.said}")
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} planted bugs are found")
    return int(bool(survivors) or not mutants)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
