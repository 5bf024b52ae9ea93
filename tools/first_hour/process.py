"""Processes of a program, what they print and when, and what no program may print."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE_S = 420.0
"""Longer than anything takes on a machine with four times as much work as cores."""
MOST_LOG_LINES = 60
_END_S = 60.0
TRACEBACK = "Traceback (most recent call last)"


class ProgramFailed(Exception):
    """What a user would have stumbled over."""


@dataclass
class Process:
    """`lines` are those of stdout with the second they came, `errors` those of stderr."""

    command: str
    popen: subprocess.Popen[str]
    began: float
    lines: list[tuple[float, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _readers: list[threading.Thread] = field(default_factory=list)

    @staticmethod
    def start(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Process:
        """In a group of its own, so that what it started can be ended with it."""
        popen = subprocess.Popen(  # noqa: S603 - programs of our own pages
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        process = Process(command[-1], popen, time.monotonic())
        for read in (process._read_output, process._read_errors):
            reader = threading.Thread(target=read, daemon=True)
            reader.start()
            process._readers.append(reader)
        return process

    def _read_output(self) -> None:
        for line in self.popen.stdout or ():
            with self._changed:
                self.lines.append((time.monotonic(), line.rstrip("\n")))
                self._changed.notify_all()
        self._note_end()

    def _read_errors(self) -> None:
        for line in self.popen.stderr or ():
            with self._changed:
                self.errors.append(line.rstrip("\n"))
                self._changed.notify_all()
        self._note_end()

    def _note_end(self) -> None:
        with self._changed:
            self._changed.notify_all()

    @property
    def output(self) -> str:
        return "".join(f"{line}\n" for _, line in self.lines)

    def first(self, pattern: str) -> float | None:
        """When the first line came that matches."""
        return next((at for at, line in self.lines if re.search(pattern, line)), None)

    def await_line(self, pattern: str, count: int = 1) -> str:
        """The line, of either stream, that is the `count`-th to match."""

        def found() -> list[str]:
            return [line for line in (*(line for _, line in self.lines), *self.errors) if re.search(pattern, line)]

        with self._changed:
            self._changed.wait_for(lambda: len(found()) >= count or self._is_silent(), PATIENCE_S)
            if len(found()) < count:
                raise ProgramFailed(f"{self.command!r} printed {len(found())} of {count} lines like {pattern!r}")
            return found()[count - 1]

    def _is_silent(self) -> bool:
        return self.popen.poll() is not None and not any(reader.is_alive() for reader in self._readers)

    def finish(self, *, status: int = 0) -> Process:
        """Wait for its end; it must be a good one."""
        try:
            self.popen.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise ProgramFailed(f"{self.command!r} does not end") from None
        for reader in self._readers:
            reader.join(_END_S)
        if self.popen.returncode != status:
            raise ProgramFailed(f"{self.command!r} ended with {self.popen.returncode}")
        self.check_prints()
        return self

    def interrupt(self) -> Process:
        """As Ctrl-C in its terminal: everything in the foreground gets it."""
        os.killpg(self.popen.pid, signal.SIGINT)
        return self.finish()

    def check_prints(self) -> None:
        if any(TRACEBACK in line for line in (*self.errors, *(line for _, line in self.lines))):
            raise ProgramFailed(f"{self.command!r} printed a traceback")
        if len(self.errors) > MOST_LOG_LINES:
            raise ProgramFailed(f"{self.command!r} printed {len(self.errors)} lines on stderr")

    def end(self) -> None:
        """Whatever is left of it."""
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()

    def log(self) -> str:
        heads = (f"$ {self.command}", f"-- stdout, exit {self.popen.poll()}", self.output, "-- stderr")
        return "\n".join((*heads, *self.errors, ""))
