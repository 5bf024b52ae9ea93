"""The manifests of a checkpoint as its writer knows them: each names the one before, and only one can follow.

    open   newest batch whole?  --yes-->  go on from it
              |  damaged
              +--> the batch before whole?  --yes-->  set the newest aside, go on from there: it will run again
                                             --no--->  say what is damaged

So the two newest states are kept, and what a batch makes superfluous is removed when the next one is committed.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from dovetail.core.errors import DamagedFile, ManifestVersionTaken, StoreError
from dovetail.core.private_files import private_folder
from dovetail.core.sealed_file import new_token, put, write_draft
from dovetail.core.sync import sync, sync_all
from dovetail.store.bad_rows import check_bad_file
from dovetail.store.bucket_file import check_bucket
from dovetail.store.layout import manifest_file
from dovetail.store.manifest import (
    Link,
    Manifest,
    SourceLog,
    check_link,
    check_names,
    check_new,
    digest_of,
    manifest_batches,
    read_manifest,
)
from dovetail.store.result_parts import check_results
from dovetail.store.state_record import State, StateWriter, read_state

SET_ASIDE = "damaged"
_log = logging.getLogger("dovetail")


class Chain:
    """Owned by the session that has the checkpoint's lock; another that got past it is found out by its token."""

    def __init__(self, root: Path, *, syncs: bool) -> None:
        self.root = root
        self.syncs = syncs
        self.token = new_token()
        self.states = StateWriter(root, self.token)
        self.newest: Manifest | None = None
        self._older: Manifest | None = None
        self._digest = ""
        self._known_folders: set[Path] = set()

    def open(self) -> State | None:
        """What the newest batch left, or the one before if that one is damaged; None in a new checkpoint."""
        batches = manifest_batches(self.root)
        if not batches:
            check_new(self.root)
            return None
        try:
            return self._open_at(batches)
        except StoreError as damage:
            if len(batches) < 2:
                raise
            try:
                state = self._open_at(batches[:-1])
            except StoreError:
                raise damage from None
            self._set_aside(batches[-1], damage)
            return state

    def _open_at(self, batches: list[int]) -> State:
        """The last of these batches, if it is whole."""
        newest = read_manifest(self.root, batches[-1])
        check_names(self.root, batches, newest)
        older = read_manifest(self.root, batches[-2]) if len(batches) > 1 else None
        check_link(self.root, None if older is None else self._link(older.batch), newest)
        state = read_state(self.root, newest)
        for meta in state.buckets:
            check_bucket(self.root, meta)
        check_results(self.root, newest.results)
        # Older ones decide nothing: whoever asks for their rows is told.
        for file in state.bad_files:
            if file.batch == newest.batch:
                check_bad_file(self.root, file)
        self.newest, self._older, self._digest = newest, older, self._link(newest.batch).digest
        return state

    def source_log_before(self, batch: int) -> SourceLog:
        """What Spark had noted when the batch before was committed."""
        if self.newest is None or batch > self.newest.batch:
            return SourceLog() if self.newest is None else self.newest.source_log
        try:
            return read_manifest(self.root, batch - 1).source_log
        except DamagedFile:
            return SourceLog()

    def _link(self, batch: int) -> Link:
        return Link(batch, digest_of((self.root / manifest_file(batch)).read_text()))

    def _set_aside(self, batch: int, damage: StoreError) -> None:
        path = self.root / manifest_file(batch)
        kept = self.root / SET_ASIDE / f"{path.name}.{self.token}"
        private_folder(kept.parent)
        path.replace(kept)
        if self.syncs:
            sync_all([path.parent, kept.parent, self.root])
        _log.error("batch %d is damaged and runs again, from the state of the batch before: %s", batch, damage)

    def put(self, manifest: Manifest, new_paths: list[str]) -> tuple[str, ...]:
        """The commit itself: appears whole or not at all, and never replaces another. All it names is on the disk.

        What it gives are files that only batches before the last two need.
        """
        newest, older = self.newest, self._older
        manifest = replace(
            manifest,
            writer=self.token,
            previous=None if newest is None else Link(newest.batch, self._digest),
            first_batch=_first_batch(newest, manifest),
        )
        target = self.root / manifest_file(manifest.batch)
        text = manifest.text
        draft = write_draft(target, text, self.token)
        if self.syncs:
            files = [self.root / path for path in (manifest.state_path, *new_paths)]
            folders = {file.parent for file in files}
            sync_all([draft, *files, *folders, *self._above(folders | {target.parent})])
            self._known_folders |= folders | {target.parent}
        if not put(draft, target) and target.read_text() != text:
            raise ManifestVersionTaken(
                f"batch {manifest.batch} was committed by somebody else",
                where=str(target),
                hint="one session per checkpoint: stop the other one",
            )
        if self.syncs:
            sync(target.parent)
        self._older, self.newest, self._digest = newest, manifest, digest_of(text)
        dead = () if newest is None else newest.dead_paths
        return dead if older is None else (*dead, older.state_path)

    def _above(self, folders: set[Path]) -> set[Path]:
        """Folders that name one of these, which is seen for the first time and may be new itself."""
        new = folders - self._known_folders
        return {above for folder in new for above in folder.parents if above.is_relative_to(self.root)}


def _first_batch(newest: Manifest | None, following: Manifest) -> int | None:
    return following.batch if newest is None else newest.first_batch
