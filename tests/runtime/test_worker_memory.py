"""A Python worker keeps the memory that its arrays free."""

from __future__ import annotations

import subprocess
import sys

import pytest

ROUNDS, ARRAYS, PAGES = 10, 5, 5000
"""100 MB at once: glibc gives some of it back by itself whenever it is free."""
FAULTS_OF = f"""
import resource, sys
import numpy as np
from dovetail.runtime.worker_memory import keep_freed_memory

if sys.argv[1] == "kept" and not keep_freed_memory():
    raise SystemExit("not changed")
def work():
    arrays = [np.ones({PAGES} * 4096, np.uint8) for _ in range({ARRAYS})]

work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({ROUNDS}):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults_of(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS_OF, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is glibc's")
def test_arrays_are_made_in_memory_that_was_freed() -> None:
    """A page is asked for once, not once for every array."""
    assert faults_of("kept") < PAGES * ARRAYS / 4 < faults_of("as ever")
