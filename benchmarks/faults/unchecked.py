"""Workers whose files have no checksums while a flag file is there: what checksums cost is seen by leaving them out.

    spark.python.daemon.module = benchmarks.faults.unchecked     Spark's Python workers are forks of this module

The checksums of small files stay: they are some hundred bytes each.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dovetail.store import bad_rows, bucket_file, checksum, manifest, result_parts

FLAG = "DOVETAIL_BENCH_UNCHECKED"
"""The environment variable that names the flag file."""


def crc32(data: Any, value: int = 0) -> int:
    flag = os.environ.get(FLAG)
    return 0 if flag is not None and Path(flag).exists() else zlib.crc32(data, value)


def leave_out_checksums() -> None:
    """From here on, in this process and its forks, as long as the flag file is there."""
    for module in (bad_rows, bucket_file, checksum, manifest, result_parts):
        vars(module)["zlib"] = SimpleNamespace(crc32=crc32)


def check_again() -> None:
    for module in (bad_rows, bucket_file, checksum, manifest, result_parts):
        vars(module)["zlib"] = zlib


if __name__ == "__main__":
    from pyspark import daemon

    leave_out_checksums()
    daemon.manager()
