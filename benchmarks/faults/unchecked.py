"""Workers whose files have no checksums while a flag file is there: what checksums cost is seen by leaving them out.

    spark.python.daemon.module = benchmarks.faults.unchecked     Spark's Python workers are forks of this module

The checksums of small files stay: they are some hundred bytes each.
"""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dovetail.testing.local_session  # noqa: F401 - with all that reads and writes data files
from dovetail.store import source_log

FLAG = "DOVETAIL_BENCH_UNCHECKED"
"""The environment variable that names the flag file."""


def crc32(data: Any, value: int = 0) -> int:
    flag = os.environ.get(FLAG)
    return 0 if flag is not None and Path(flag).exists() else zlib.crc32(data, value)


_UNCHECKED = SimpleNamespace(crc32=crc32)


def leave_out_checksums() -> None:
    """From here on, in this process and its forks, as long as the flag file is there."""
    _replace(zlib, _UNCHECKED)


def check_again() -> None:
    _replace(_UNCHECKED, zlib)


def _replace(known: Any, other: Any) -> None:
    """In all modules that sum up data files; Spark's own files are not ours."""
    for name, module in list(sys.modules.items()):
        of_data = name.startswith(("dovetail.store.", "dovetail.runtime.")) and name != source_log.__name__
        if of_data and vars(module).get("zlib") is known:
            vars(module)["zlib"] = other


if __name__ == "__main__":
    from pyspark import daemon

    leave_out_checksums()
    daemon.manager()
