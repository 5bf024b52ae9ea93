"""Workers whose files have no checksums while a flag file is there: what checksums cost is seen by leaving them out.

    spark.python.daemon.module = benchmarks.faults.unchecked     Spark's Python workers are forks of this module

The checksums of small files stay: they are some hundred bytes each.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail.testing.local_session  # noqa: F401 - with all that reads and writes data files
from dovetail.store.checksum import checksum_of

FLAG = "DOVETAIL_BENCH_UNCHECKED"
"""The environment variable that names the flag file."""
_CHECKED = checksum_of


def _unchecked(content: Any, before: int = 0) -> int:
    flag = os.environ.get(FLAG)
    return 0 if flag is not None and Path(flag).exists() else _CHECKED(content, before)


def leave_out_checksums() -> None:
    """From here on, in this process and its forks, as long as the flag file is there."""
    _replace(_CHECKED, _unchecked)


def check_again() -> None:
    _replace(_unchecked, _CHECKED)


def _replace(known: Callable[..., int], other: Callable[..., int]) -> None:
    """In all modules that sum up data files; other files have sums of their own."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dovetail.") and vars(module).get(checksum_of.__name__) is known:
            vars(module)[checksum_of.__name__] = other


if __name__ == "__main__":
    from pyspark import daemon

    leave_out_checksums()
    daemon.manager()
