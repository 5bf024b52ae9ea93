"""What a power loss must not take: bytes of files, and the names under which folders have them, are on the disk.

    tasks    write a file --sync_later--> ... more work ... --the end of synced_files--> the task reports
    driver   sync_all: state, draft of the manifest, folders with new names  ->  link the manifest  ->  sync its folder

Disks take many requests at once for little more time than one, so files are synced side by side.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

_SIDE_BY_SIDE = 16


def sync(path: Path) -> None:
    """Return when the bytes of a file, or the names in a folder, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_all(paths: Iterable[Path]) -> None:
    """The same for many."""
    wanted = list(dict.fromkeys(paths))
    if len(wanted) == 1:
        sync(wanted[0])
    for done in [_pool().submit(sync, path) for path in wanted] if len(wanted) > 1 else []:
        done.result()


def sync_later(path: Path) -> None:
    """Begin it while the task goes on; nothing happens outside of `synced_files`."""
    syncs: list[Future[None]] | None = getattr(_of_thread, "syncs", None)
    if syncs is not None:
        syncs.append(_pool().submit(sync, path))


@contextmanager
def synced_files() -> Iterator[None]:
    """What this thread writes inside is on the disk when the block ends."""
    syncs: list[Future[None]] = []
    _of_thread.syncs = syncs
    try:
        yield
    finally:
        _of_thread.syncs = None
    for begun in syncs:
        begun.result()


class _Pools:
    """A pool for each process: threads do not survive a fork, and Spark's workers are forks."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_process: dict[int, ThreadPoolExecutor] = {}


_pools = _Pools()
_of_thread = threading.local()


def _pool() -> ThreadPoolExecutor:
    process = os.getpid()
    found = _pools.by_process.get(process)
    if found is None:
        with _pools.lock:
            found = _pools.by_process.setdefault(process, ThreadPoolExecutor(_SIDE_BY_SIDE, "dovetail-sync"))
    return found
