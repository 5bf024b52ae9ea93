"""`make mutants`: plants one bug at a time into a copy of the repository and shows that `make test` finds it.

    tools/mutants.txt   the bugs: a name, a file, the line to change, what it becomes, and the tests that must fail

A bug that no test finds is a hole in the tests; one whose line is gone is a stale entry. Both fail the run. The named
tests alone are run, since any failure among them fails `make test`; they must be fast ones. `--only WORD` plants those
whose name has the word.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tools" / "mutants.txt"
COPIED = ("src", "tests", "benchmarks", "tools", "docs", "examples", "pyproject.toml", "README.md", "ARCHITECTURE.md")
FAILED = 1
"""What pytest ends with when tests ran and some failed."""
_FIELDS = ("file", "line", "becomes", "tests")


@dataclass(frozen=True)
class Mutant:
    """A bug: one piece of text of one file, which must be there once, and what stands there instead."""

    name: str
    file: str
    line: str
    becomes: str
    tests: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.line == self.becomes:
            raise ValueError(f"{self.name}: nothing changes")
        if not self.tests:
            raise ValueError(f"{self.name}: which tests find it?")

    def plant(self, root: Path) -> None:
        path = root / "src" / "dovetail" / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.line) != 1:
            raise ValueError(f"{self.name}: {self.file} has its line {text.count(self.line)} times, not once")
        path.write_text(text.replace(self.line, self.becomes), encoding="utf-8")


def read_mutants(text: str) -> Iterator[Mutant]:
    """Paragraphs: the name in a line, then `field: value` for each field; `#` begins a comment."""
    for paragraph in text.split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line.strip() and not line.startswith("#")]
        if not lines:
            continue
        name, *fields = lines
        given = dict(line.split(": ", 1) for line in fields)
        if tuple(given) != _FIELDS:
            raise ValueError(f"{name}: fields are {', '.join(_FIELDS)}, not {', '.join(given)}")
        yield Mutant(name, given["file"], given["line"], given["becomes"], tuple(given["tests"].split()))


def copy_tree(to: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            # Compiled kernels come along with their times: only the mutated file is compiled again.
            shutil.copytree(source, to / name, copy_function=shutil.copy2)
        else:
            shutil.copy2(source, to / name)


def is_found(mutant: Mutant) -> tuple[bool, str]:
    """Whether the tests fail with the bug planted, and the end of what they said."""
    with tempfile.TemporaryDirectory(prefix="dovetail-mutant-") as folder:
        root = Path(folder)
        copy_tree(root)
        mutant.plant(root)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider"]
        run = subprocess.run(  # noqa: S603 - our own tests in our own copy
            [*command, "-m", "not slow and not spark", *mutant.tests],
            cwd=root,
            env={**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
            capture_output=True,
            text=True,
            check=False,
        )
        return run.returncode == FAILED, run.stdout[-2000:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="plant the bugs whose name has this word")
    only = parser.parse_args().only
    mutants = [each for each in read_mutants(LIST.read_text(encoding="utf-8")) if only in each.name]
    survivors = []
    for number, mutant in enumerate(mutants, 1):
        found, said = is_found(mutant)
        print(f"{number:3}/{len(mutants)}  {'found' if found else 'NOT FOUND'}  {mutant.name}", flush=True)
        if not found:
            survivors.append(mutant.name)
            print(said)
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} planted bugs are found")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
