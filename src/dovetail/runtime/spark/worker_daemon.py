"""The process from which Spark on this machine forks its Python workers; a local session names it to Spark.

Spark's own daemon forks workers that know nothing: each imports Arrow, Numba and Dovetail by itself, which takes longer
than many a batch. This one has them before it forks. So every worker begins with all of it, also one in the place of a
worker that was killed, and they share its memory.

A thread that is busy while its process forks may leave a lock behind that nobody opens, so nothing here starts one:
Arrow's threads begin with their first work, which is in a worker.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any


def prefer_installed() -> None:
    """Spark puts its own zipped PySpark first, whose modules are compiled anew in every process: a second or more.

    Where the same PySpark is installed, it is taken instead.
    """
    zipped = [path for path in sys.path if path.endswith("pyspark.zip")]
    others = [path for path in sys.path if path not in zipped]
    spec = PathFinder.find_spec("pyspark", others)
    if not zipped or spec is None or spec.origin is None:
        return
    # The zip lies in the folder of the PySpark that runs the driver, if that was installed with pip.
    if Path(spec.origin).resolve().parent in Path(zipped[0]).resolve().parents:
        sys.path[:] = [path for path in others if not re.search(r"py4j-[^/]*-src\.zip$", path)]


def forget_zips() -> None:
    """Before every task Spark has Python look anew at all it ever imported from: not at zips that it no longer does."""
    for path in [path for path in sys.path_importer_cache if path.endswith(".zip") and path not in sys.path]:
        del sys.path_importer_cache[path]


def load() -> None:
    """What tasks of Dovetail need. What cannot be had here cannot be had in a worker either, where somebody is told."""
    import numpy as np  # noqa: PLC0415 - while stdout is kept
    import pyspark.worker  # noqa: F401, PLC0415

    import dovetail.runtime.spark.run_spark  # noqa: F401, PLC0415
    from dovetail.kernels.match.hash_keys import combine_words  # noqa: PLC0415

    # The first call of any kernel makes Numba load most of itself.
    combine_words([np.zeros(1, np.uint64)] * 2)
    with suppress(ImportError):
        import pandas as pd  # noqa: F401, PLC0415 - Spark's own code of Arrow tasks wants it


@contextmanager
def _kept_stdout() -> Iterator[None]:
    """Spark reads the daemon's address from its stdout: no library may print there."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _quiet(work: Callable[..., int]) -> Callable[..., int]:
    """Where Spark has rows enough (`show`, `limit`) it hangs up on its worker, which is nothing to tell anybody."""

    def worker(*given: Any) -> int:
        try:
            return work(*given)
        except BrokenPipeError:
            return os.EX_IOERR

    return worker


def main() -> None:
    prefer_installed()
    from pyspark import daemon  # noqa: PLC0415 - not before it is known which

    with _kept_stdout():
        load()
    forget_zips()
    vars(daemon)["worker"] = _quiet(daemon.worker)
    # Workers collect garbage after every task: not over all of this, which would also give each a copy of its own.
    gc.collect()
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
