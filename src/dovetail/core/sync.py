"""What a power loss must not take: bytes of files, and the names under which folders have them, are on the disk.

    tasks    write a file --sync_later--> ... more work ... --the end of syncing_files--> the task reports
    driver   sync_all: what tasks wrote, state, draft of the manifest, folders with new names
             ->  link the manifest  ->  sync its folder

Disks take many requests at once for little more time than one, so files are synced side by side. Tasks on the driver's
machine only have the disk begin: the driver waits once for all of them, and they go on meanwhile. Elsewhere a task
waits itself, for no machine can tell what another one has in its memory.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

_SIDE_BY_SIDE = 16
_BEGIN_TO_WRITE = 2
"""Linux calls it SYNC_FILE_RANGE_WRITE."""


class Syncing(Enum):
    """What becomes of a task's files before it reports."""

    NOT = "not"
    BEGUN = "begun"  # they are on their way; whoever commits waits for them
    DONE = "done"  # they are on the disk

    @property
    def by_task(self) -> Syncing:
        """The same where whoever commits cannot wait for the files."""
        return Syncing.DONE if self is Syncing.BEGUN else self


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
    """Begin it while the task goes on; nothing happens outside of `syncing_files`."""
    syncing: _TaskSyncs | None = getattr(_of_thread, "syncing", None)
    if syncing is not None:
        syncing.add(path)


@contextmanager
def syncing_files(how: Syncing) -> Iterator[None]:
    """What this thread writes inside is so far when the block ends."""
    syncs = _TaskSyncs(how)
    _of_thread.syncing = syncs
    try:
        yield
    finally:
        _of_thread.syncing = None
    syncs.finish()


class _TaskSyncs:
    def __init__(self, how: Syncing) -> None:
        self._how = how
        self._awaited: list[Future[None]] = []

    def add(self, path: Path) -> None:
        if self._how is Syncing.DONE:
            self._awaited.append(_pool().submit(sync, path))
        elif self._how is Syncing.BEGUN and _begins_to_write() is not None:
            _pool().submit(_begin, path)

    def finish(self) -> None:
        for begun in self._awaited:
            begun.result()


def _begin(path: Path) -> None:
    """Tells nobody of an error: the disk tells it once, and that must be to whoever waits for the file."""
    begins_to_write = _begins_to_write()
    assert begins_to_write is not None
    try:
        opened = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        # A task that failed meanwhile has removed it.
        return
    try:
        begins_to_write(opened, 0, 0, _BEGIN_TO_WRITE)
    finally:
        os.close(opened)


@cache
def _begins_to_write() -> Any:
    """`sync_file_range`; None where there is none, and all is left to whoever waits."""
    try:
        found = ctypes.CDLL(None, use_errno=True).sync_file_range
    except (OSError, AttributeError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return found


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
