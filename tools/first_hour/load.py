"""Keeps a machine busy: processes that only count, as many as it takes to a given load."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

_LOOK_EVERY_S = 1.0
_REMEMBERED = 8
_BUSY = "while True: pass"


class Load:
    """The load is how many threads want a core, as the kernel counts them; `wanted` 0 adds nothing."""

    def __init__(self, wanted: float) -> None:
        self._wanted = wanted
        self._busy: list[subprocess.Popen[bytes]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self.seen: list[int] = []

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self._thread.join()
        for process in self._busy:
            process.kill()
            process.wait()

    @property
    def mean(self) -> float:
        return sum(self.seen) / len(self.seen) if self.seen else 0.0

    def _keep(self) -> None:
        while not self._ended.wait(_LOOK_EVERY_S):
            self.seen.append(runnable_threads())
            lately = self.seen[-_REMEMBERED:]
            missing = self._wanted - sum(lately) / len(lately)
            if missing >= 1 and len(self._busy) < self._wanted:
                self._busy.append(subprocess.Popen([sys.executable, "-c", _BUSY]))  # noqa: S603 - our own line
            elif missing <= -1 and self._busy:
                process = self._busy.pop()
                process.kill()
                process.wait()


def runnable_threads() -> int:
    """Without the one that asks."""
    try:
        fields = Path("/proc/loadavg").read_text(encoding="ascii").split()
        return max(int(fields[3].partition("/")[0]) - 1, 0)
    except OSError:
        return round(os.getloadavg()[0])
