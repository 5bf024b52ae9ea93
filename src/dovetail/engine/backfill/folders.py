"""The folders of histories: which of them a session goes on with, and how long one outlives its backfill.

The newest batch of a session may turn out to be damaged and run again, perhaps over other rows, from the state before
it. So a folder stays until no state that the session could begin with needs it, and what a history made of a batch
that runs again is not used.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.state import NO_BATCH, EngineState
from dovetail.store.layout import BACKFILLS, backfill_dir
from dovetail.store.manifest import manifest_batches

_GONE = "~"
"""No query's folder ends so: one that is partly removed is nobody's history."""


class HistoryFolders:
    """`kept` are those that the newest two states need; of a session that just began, all that it found of use."""

    def __init__(self, root: Path, state: EngineState) -> None:
        self._root = root
        records = {root / backfill_dir(record.id): record for record in state.registry.records}
        for folder in self._found():
            if not _is_history_of(records.get(folder), folder, state.batch):
                _remove(folder)
        self._newest = frozenset(self._found())
        self.kept = self._newest

    def follow(self, running: Iterable[str]) -> None:
        """Another state is committed, in which backfills of these queries are running."""
        before, self._newest = self._newest, frozenset(self._root / backfill_dir(query) for query in running)
        self.kept = before | self._newest

    def remove_all_but(self, kept: frozenset[Path]) -> None:
        for folder in self._found():
            if folder not in kept:
                _remove(folder)

    def _found(self) -> list[Path]:
        return sorted((self._root / BACKFILLS).glob("*"))


def _is_history_of(record: QueryRecord | None, folder: Path, newest_batch: int) -> bool:
    """Whether the folder ran batches that the session has, and ended a chunk where the session adopted up to."""
    if record is None or record.backfill is None:
        return False
    batches, adopted_batch = manifest_batches(folder), record.backfill.adopted_batch
    last = max(batches, default=NO_BATCH)
    return last <= newest_batch and (last <= adopted_batch or adopted_batch in (NO_BATCH, *batches))


def _remove(folder: Path) -> None:
    """Under another name first, so that a crash in between leaves no history with files missing."""
    if not folder.name.endswith(_GONE):
        gone = folder.with_name(folder.name + _GONE)
        if gone.exists():
            shutil.rmtree(gone)
        folder = folder.replace(gone)
    shutil.rmtree(folder)
