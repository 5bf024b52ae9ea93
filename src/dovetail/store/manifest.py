"""What makes a batch real: its manifest, which names the batch's answers, its state record and the manifest before.

Manifests stay for ever, one per batch. They are JSON with the engine's plain records inside.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dovetail.core.errors import DamagedFile
from dovetail.core.sealed_file import FileKind, damaged, files_in, read_sealed, sealed
from dovetail.store.bad_rows import BadFile
from dovetail.store.layout import BACKFILLS, manifest_file

MANIFEST = FileKind("manifest", "which answers its batch has and what the next one begins with")


@dataclass(frozen=True)
class ResultPart:
    """Committed answers of one query: a file of Parquet, or `size_bytes` of one that many queries share.

    These begin at the `offset` and are an Arrow IPC stream. Without a checksum a part is older than checksums.
    """

    query: str
    path: str
    rows: int
    size_bytes: int
    checksum: int | None = None
    offset: int | None = None


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

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Arrival:
        retried = tuple(BadFile(**file) for file in record.get("retried", ()))
        unread = {stream: tuple(paths) for stream, paths in record.get("unread", {}).items()}
        return Arrival(**{**record, "retried": retried, "unread": unread})


@dataclass(frozen=True)
class PastBatch:
    """A committed batch whose rows are wanted again, and how the one before it came in: its rows begin there."""

    batch: int
    arrival: Arrival
    previous: Arrival = field(default_factory=Arrival)


@dataclass(frozen=True)
class SourceLog:
    """What Spark noted of its sources up to a batch, so that its folder can be made again.

    `files` are texts by path in Spark's folder, those that no earlier manifest has; of a file that repeats what stands
    in others only the new lines. `checksums` are those of whole files, `upto` the newest number that each source's own
    log has by then.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    checksums: Mapping[str, int] = field(default_factory=dict)
    upto: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        return bool(self.files)


@dataclass(frozen=True)
class Arrived:
    """How far a batch reads its sources: by stream in the source's own words, and as Spark noted it."""

    offsets: Mapping[str, str] = field(default_factory=dict)
    source_log: SourceLog = field(default_factory=SourceLog)


@dataclass(frozen=True)
class Link:
    """A manifest as the next one names it."""

    batch: int
    digest: str


@dataclass(frozen=True)
class Manifest:
    """Batch `batch` happened: this is its state, these are its answers, so its rows came in.

    `writer` is the token of the session that put it. `dead_paths` are files that only older batches need. The chain
    begins with `first_batch`. Manifests that are older than these fields do not know them.
    """

    batch: int
    state_path: str
    state_checksum: int
    results: tuple[ResultPart, ...]
    committed_at: float
    arrival: Arrival = field(default_factory=Arrival)
    writer: str = ""
    previous: Link | None = None
    first_batch: int | None = None
    dead_paths: tuple[str, ...] = ()
    source_log: SourceLog = field(default_factory=SourceLog)

    @staticmethod
    def from_json(record: dict[str, Any]) -> Manifest:
        fields = dict(record)
        fields["results"] = tuple(ResultPart(**result) for result in fields["results"])
        fields["arrival"] = Arrival.from_json(fields["arrival"])
        if fields.get("previous") is not None:
            fields["previous"] = Link(**fields["previous"])
        fields["dead_paths"] = tuple(fields.get("dead_paths", ()))
        fields["source_log"] = SourceLog(**fields.get("source_log", {}))
        return Manifest(**fields)

    @property
    def text(self) -> str:
        # There may be hundreds of results, plain records all of them: `asdict` would copy each value of each.
        results = [vars(result) for result in self.results]
        return sealed({**asdict(replace(self, results=())), "results": results})


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def manifest_batches(root: Path) -> list[int]:
    """Which batches have a manifest, the oldest first."""
    return sorted(int(path.name[1:11]) for path in files_in(root / "manifests", "b*.json", MANIFEST))


def read_manifest(root: Path, batch: int) -> Manifest:
    """Raises DamagedFile also where the file has the bytes of another batch's."""
    path = root / manifest_file(batch)
    manifest = read_sealed(path, MANIFEST, Manifest.from_json)
    if manifest.batch != batch:
        raise damaged(path, MANIFEST, f"is that of batch {manifest.batch}")
    return manifest


def read_manifests(root: Path, upto: int | None = None) -> Iterator[Manifest]:
    """All manifests, oldest first. Raises DamagedFile where one is missing or is not the one that the next names.

    With `upto` those up to this batch, which must be there.
    """
    before: Link | None = None
    batches = manifest_batches(root)
    if upto is not None:
        batches = [batch for batch in batches if batch <= upto]
        if upto >= 0 and upto not in batches:
            raise damaged(root / manifest_file(upto), MANIFEST, "is missing")
    for batch in batches:
        manifest = read_manifest(root, batch)
        check_link(root, before, manifest)
        before = Link(batch, digest_of((root / manifest_file(batch)).read_text()))
        yield manifest


def check_link(root: Path, before: Link | None, manifest: Manifest) -> None:
    """`before` is the manifest that is there before this one, if there is any."""
    named = manifest.previous
    if named is None or manifest.batch == manifest.first_batch:
        return
    if before is None or before.batch != named.batch:
        raise damaged(root / manifest_file(named.batch), MANIFEST, f"is missing, batch {manifest.batch} names it")
    if before.digest != named.digest:
        raise damaged(
            root / manifest_file(named.batch), MANIFEST, f"is not the one that batch {manifest.batch} follows"
        )


def check_names(root: Path, batches: list[int], newest: Manifest) -> None:
    """Without reading all of them: whether every manifest of the chain is there."""
    first = newest.first_batch
    if first is not None and batches[0] > first:
        raise damaged(root / manifest_file(first), MANIFEST, "is missing, the chain begins with it")
    for earlier, later in itertools.pairwise(batches):
        # Where an old manifest does not name the one before, nobody knows; a backfill's own may skip numbers.
        named = None if later == earlier + 1 else read_manifest(root, later).previous
        if named is not None and named.batch != earlier:
            raise damaged(root / manifest_file(named.batch), MANIFEST, f"is missing, batch {later} names it")


def check_new(root: Path) -> None:
    """Raise where there is no manifest, but what only follows from one."""
    # A backfill begins with any batch, and its first commit may have been cut short.
    first_states = [] if root.parent.name == BACKFILLS else (root / "state").glob("b*.json")
    later = [path for path in first_states if int(path.name[1:11]) > 0]
    traces = [*later, *(root / "spark" / "commits").glob("[0-9]*")]
    if traces:
        raise DamagedFile(
            f"there is no manifest, but {traces[0].relative_to(root)}: lost is which batches were committed, and with"
            " it all queries and answers",
            where=str(root / "manifests"),
            hint=MANIFEST.remedy,
        )
