"""One run of a program: a folder like a fresh clone, its processes, and when its first rows came."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.first_hour.blocks import ROOT, in_own_folder
from tools.first_hour.process import Process, ProgramFailed

LINKED = (".venv", "Makefile", "benchmarks", "docs", "src", "tests", "tools")
SET_UP = ".venv/.setup-done"


class Work:
    """`folder` looks like a clone whose `make setup` is done; examples are copies: services write beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[Process] = []
        self.began = time.monotonic()
        self.first_rows_s: float | None = None
        for name in LINKED:
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("checkpoint*", "*.jsonl"))
        # Older than the set-up that was made from it: no `make` of a page may install anything.
        shutil.copyfile(ROOT / "pyproject.toml", folder / "pyproject.toml")
        os.utime(folder / "pyproject.toml", (0, 0))
        own = {
            "HOME": str(folder),
            # What the machine was warmed up with stays in use.
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "TMPDIR": str(folder),
        }
        self.env = {**os.environ, **own}
        for name in ("DOVETAIL_TOKEN", "DOVETAIL_URL", "MAKELEVEL", "MAKEFLAGS"):
            self.env.pop(name, None)

    def start(self, command: str) -> Process:
        """As in a terminal; an interrupt reaches the program itself."""
        process = Process.start(["/bin/bash", "-c", command], self.folder, self.env)
        self.processes.append(process)
        return process

    def check_set_up(self) -> None:
        if not (self.folder / SET_UP).exists():
            raise ProgramFailed("this clone is not set up: run make setup")

    def run(self, command: str) -> Process:
        return self.start(command).finish()

    def python(self, program: str) -> Process:
        file = self.folder / "first.py"
        file.write_text(in_own_folder(program, self.folder), encoding="utf-8")
        return self.run(f"exec .venv/bin/python {file.name}")

    def rows_from(self, process: Process, pattern: str) -> None:
        """Rows must be among its output; notes when the first one came."""
        found = process.first(pattern)
        if found is None:
            raise ProgramFailed(f"{process.command!r} printed no line like {pattern!r}")
        if self.first_rows_s is None:
            self.first_rows_s = found - self.began

    def log(self) -> str:
        return "\n".join(process.log() for process in self.processes)


@contextmanager
def working() -> Iterator[Work]:
    with tempfile.TemporaryDirectory(prefix="first-hour-", ignore_cleanup_errors=True) as folder:
        work = Work(Path(folder))
        try:
            yield work
        finally:
            for process in work.processes:
                process.end()
