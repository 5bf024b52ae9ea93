"""What a commit makes real: a state record (everything the next batch needs) and a manifest (this batch's answers).

Manifests stay for ever, one per batch, and name only that batch's result files; state records are whole and
only the newest counts. Both are JSON with the engine's plain records inside.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dovetail.core.errors import ManifestVersionTaken, StoreError
from dovetail.store.bad_rows import BadFile
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.layout import manifest_file, state_file


@dataclass(frozen=True)
class ResultFile:
    """One committed file of one query's answers."""

    query: str
    path: str
    rows: int
    size_bytes: int


@dataclass(frozen=True)
class State:
    """Everything that batch `batch + 1` needs; `engine` holds the engine's own records as plain JSON."""

    batch: int
    buckets: tuple[BucketMeta, ...]
    engine: dict[str, Any]
    bad_files: tuple[BadFile, ...] = ()


@dataclass(frozen=True)
class Arrival:
    """How a batch's rows came in: what it takes to have the same rows again, and the same of them late.

    By stream the newest event time before the batch, the time below which its rows were late, and how far its source
    was read, in the source's own words; nothing where it has none. Rows past `last_time_us` were bad;
    `retried` are the files of bad rows that the batch took again, `unread` those of its source that it did without.
    """

    newest_us: Mapping[str, int] = field(default_factory=dict)
    late_before_us: Mapping[str, int] = field(default_factory=dict)
    offsets: Mapping[str, str] = field(default_factory=dict)
    last_time_us: Mapping[str, int] = field(default_factory=dict)
    retried: tuple[BadFile, ...] = ()
    unread: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class PastBatch:
    """A committed batch whose rows are wanted again, and how the one before it came in: its rows begin there."""

    batch: int
    arrival: Arrival
    previous: Arrival = field(default_factory=Arrival)


@dataclass(frozen=True)
class Manifest:
    """Batch `batch` happened: this is its state, these are its answers, so its rows came in."""

    batch: int
    state_path: str
    state_checksum: int
    results: tuple[ResultFile, ...]
    committed_at: float
    arrival: Arrival = field(default_factory=Arrival)


def write_state(root: Path, state: State) -> tuple[str, int]:
    """Write the state record; nothing refers to it yet, so writing it again is harmless."""
    # Every bucket of a store has hundreds of selections, mostly the same: each text is written once.
    place_by_selection: dict[str, int] = {}
    buckets = []
    for bucket in state.buckets:
        places = [place_by_selection.setdefault(text, len(place_by_selection)) for text in bucket.selections]
        buckets.append(bucket.to_json() | {"selections": places})
    record = {
        "batch": state.batch,
        "selections": list(place_by_selection),
        "buckets": buckets,
        "engine": state.engine,
        "bad_files": [asdict(file) for file in state.bad_files],
    }
    text = json.dumps(record, separators=(",", ":"))
    path = state_file(state.batch)
    _replace(root / path, text)
    return path, zlib.crc32(text.encode())


def put_manifest(root: Path, manifest: Manifest) -> None:
    """The commit itself: appears whole or not at all, and never replaces another."""
    target = root / manifest_file(manifest.batch)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(f".{os.getpid()}.draft")
    draft.write_text(json.dumps(asdict(manifest), separators=(",", ":")))
    try:
        os.link(draft, target)
    except FileExistsError:
        raise ManifestVersionTaken(
            f"batch {manifest.batch} was committed by somebody else",
            where=str(target),
            hint="one session per checkpoint: stop the other one",
        ) from None
    finally:
        draft.unlink()


def read_manifests(root: Path) -> Iterator[Manifest]:
    """All manifests, oldest first."""
    for path in sorted((root / "manifests").glob("b*.json")):
        yield _read_manifest(path)


def read_manifest(root: Path, batch: int) -> Manifest:
    return _read_manifest(root / manifest_file(batch))


def latest_arrival(root: Path) -> tuple[int, Arrival]:
    """The number of the newest committed batch, and how its rows came in; -1 in a new checkpoint."""
    paths = sorted((root / "manifests").glob("b*.json"))
    if not paths:
        return -1, Arrival()
    manifest = _read_manifest(paths[-1])
    return manifest.batch, manifest.arrival


def read_latest(root: Path) -> tuple[Manifest, State] | None:
    """The newest committed batch, or None in a new checkpoint."""
    paths = sorted((root / "manifests").glob("b*.json"))
    if not paths:
        return None
    manifest = _read_manifest(paths[-1])
    text = _read(root / manifest.state_path)
    if zlib.crc32(text.encode()) != manifest.state_checksum:
        raise StoreError(f"state record {manifest.state_path} has other bytes than were committed")
    record = json.loads(text)
    texts = record["selections"]
    buckets = tuple(
        BucketMeta.from_json(bucket | {"selections": [texts[place] for place in bucket["selections"]]})
        for bucket in record["buckets"]
    )
    bad_files = tuple(BadFile(**file) for file in record.get("bad_files", ()))
    return manifest, State(record["batch"], buckets, record["engine"], bad_files)


def _read_manifest(path: Path) -> Manifest:
    text = _read(path)
    try:
        record = json.loads(text)
        record["results"] = tuple(ResultFile(**result) for result in record["results"])
        record["arrival"] = _arrival(record["arrival"])
        return Manifest(**record)
    except (ValueError, KeyError, TypeError):
        raise StoreError(
            f"manifest {path.name} cannot be read", where=str(path), hint="restore the file from a backup"
        ) from None


def _arrival(record: dict[str, Any]) -> Arrival:
    return Arrival(**{**record, "retried": tuple(BadFile(**file) for file in record.get("retried", ()))})


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise StoreError(f"{path.name} is missing from the checkpoint", where=str(path)) from None


def _replace(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(target)
