"""Removes files that no manifest names: what retried tasks and crashes left behind."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from dovetail.core.clock import Clock, system_clock
from dovetail.core.errors import DamagedFile
from dovetail.store.layout import BACKFILLS
from dovetail.store.manifest import manifest_batches, read_manifest, read_manifests
from dovetail.store.state_record import read_state

DEFAULT_RETENTION_S = 3600.0
_DRAFTS = ("manifests/*.draft", "changelog/*.draft", "delivered/*.draft")
"""What a crash may leave where every other file stays."""


@dataclass(frozen=True)
class VacuumReport:
    """`paths` were removed, or would be in a dry run."""

    paths: tuple[str, ...]
    size_bytes: int
    is_dry_run: bool


def vacuum(
    root: Path, *, dry_run: bool, retention_s: float = DEFAULT_RETENTION_S, clock: Clock = system_clock
) -> VacuumReport:
    """Files younger than `retention_s` stay: a running batch may be about to commit them."""
    named = _named_paths(root)
    folders = ["buckets", "results", "answers", "state", "bad_rows"]
    for history in sorted((root / BACKFILLS).glob("*")):
        place = history.relative_to(root).as_posix()
        named |= {f"{place}/{path}" for path in _named_paths(history)}
        folders += [f"{place}/{folder}" for folder in ("buckets", "results", "answers", "state")]
    removable: list[str] = []
    size_bytes = 0
    for pattern in (*(f"{folder}/**/*" for folder in folders), *_DRAFTS):
        for path in sorted(root.glob(pattern)):
            relative = path.relative_to(root).as_posix()
            if relative in named:
                continue
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue  # a batch that commits meanwhile cleans up, too
            if not S_ISREG(stat.st_mode) or clock() - stat.st_mtime < retention_s:
                continue
            removable.append(relative)
            size_bytes += stat.st_size
            if not dry_run:
                path.unlink(missing_ok=True)
    return VacuumReport(tuple(removable), size_bytes, dry_run)


def _named_paths(root: Path) -> set[str]:
    named: set[str] = set()
    for manifest in read_manifests(root):
        named.update(result.path for result in manifest.results)
        named.update(file.path for file in manifest.arrival.retried)
    newest = [read_manifest(root, batch) for batch in manifest_batches(root)[-2:]]
    for manifest in newest:
        named.add(manifest.state_path)
        # Of the batch before a commit may remove it meanwhile; a version before this one kept only the newest.
        with nullcontext() if manifest is newest[-1] else suppress(DamagedFile):
            state = read_state(root, manifest)
            named.update(bucket.path for bucket in state.buckets)
            named.update(file.path for file in state.bad_files)
    return named
