"""Removes files that no manifest names: what retried tasks and crashes left behind.

A batch may be under way, and commit meanwhile:

    newest two states --> all manifests --> files that are there
    |                     |                 of batches after the newest: not touched, their manifest is yet to come
    |                     names also what a commit took out of the states since they were read
    names what the newest batch goes on from
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from dovetail.core.clock import Clock, system_clock
from dovetail.core.errors import DamagedFile
from dovetail.store.layout import BACKFILLS, written_batch
from dovetail.store.manifest import manifest_batches, read_manifest, read_manifests
from dovetail.store.state_record import read_state

DEFAULT_RETENTION_S = 3600.0
_FILES = ("buckets/**/*", "results/**/*", "answers/**/*", "state/**/*")
_ALSO_OF_A_SESSION = ("bad_rows/**/*", "manifests/*.draft", "changelog/*.draft", "delivered/*.draft")
"""Drafts are what a crash may leave where every other file stays."""


@dataclass(frozen=True)
class VacuumReport:
    """`paths` were removed, or would be in a dry run."""

    paths: tuple[str, ...]
    size_bytes: int
    is_dry_run: bool


def vacuum(
    root: Path, *, dry_run: bool, retention_s: float = DEFAULT_RETENTION_S, clock: Clock = system_clock
) -> VacuumReport:
    """Files younger than `retention_s` stay: a draft may be about to get its name."""
    removable: list[str] = []
    size_bytes = 0
    for path in _unnamed(root):
        try:
            stat = path.stat()
        except FileNotFoundError:
            continue  # a batch that commits meanwhile cleans up, too
        if not S_ISREG(stat.st_mode) or clock() - stat.st_mtime < retention_s:
            continue
        removable.append(path.relative_to(root).as_posix())
        size_bytes += stat.st_size
        if not dry_run:
            path.unlink(missing_ok=True)
    return VacuumReport(tuple(removable), size_bytes, dry_run)


def _unnamed(root: Path) -> Iterator[Path]:
    """What nobody needs, now or later, of a session and of its backfills."""
    yield from _unnamed_in(root, (*_FILES, *_ALSO_OF_A_SESSION))
    for history in sorted((root / BACKFILLS).glob("*")):
        yield from _unnamed_in(history, _FILES)


def _unnamed_in(root: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    newest, named = _named_by_states(root)
    for manifest in read_manifests(root):
        named.update(result.path for result in manifest.results)
        named.update(file.path for file in manifest.arrival.retried)
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            if path.relative_to(root).as_posix() in named:
                continue
            batch = written_batch(path.name)
            # An attempt at a batch that is not committed yet may be the one that will be, however old its files are.
            if batch is None or batch <= newest:
                yield path


def _named_by_states(root: Path) -> tuple[int, set[str]]:
    """The newest batch, and the states of it and the one before with all that they name."""
    while True:
        batches = manifest_batches(root)[-2:]
        try:
            named = [_named_by_state(root, batch, is_newest=batch == batches[-1]) for batch in batches]
        except DamagedFile:
            if manifest_batches(root)[-2:] == batches:
                raise
            continue  # two commits came in between, and took its state with them
        return max(batches, default=-1), set().union(*named)


def _named_by_state(root: Path, batch: int, *, is_newest: bool) -> set[str]:
    manifest = read_manifest(root, batch)
    named = {manifest.state_path}
    # Of the batch before a commit may remove it meanwhile; a version before this one kept only the newest.
    with nullcontext() if is_newest else suppress(DamagedFile):
        state = read_state(root, manifest)
        named.update(bucket.path for bucket in state.buckets)
        named.update(file.path for file in state.bad_files)
    return named
