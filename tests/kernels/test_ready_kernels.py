"""Whoever runs the first kernel of a process does not pay for what numba loads before it."""

from __future__ import annotations

import subprocess
import sys

FIRST_KERNEL = """
import sys
import numpy as np
from dovetail.kernels.ready_kernels import ready_kernels
ready_kernels()
before = set(sys.modules)
from numba import njit
njit(lambda x: x + 1)(np.int64(1))
print(sorted(name for name in set(sys.modules) - before if name.startswith(("numba.cpython", "numba.np", "scipy"))))
"""


def test_the_first_kernel_loads_nothing_of_numba() -> None:
    found = subprocess.run([sys.executable, "-c", FIRST_KERNEL], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
