"""What Spark's checkpoint says of a batch: how far each source was read, and which files that were.

offsets/N          version, settings, then one line a source: «name:{...}» (v2) or «{...}» by position (v1)
sources/S/n        version, then one JSON line a file; S is the source's name or position
sources/S/n.compact  the same for all numbers up to n, in place of their own files
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from dovetail.core.errors import HistoryError
from dovetail.core.private_files import write_private
from dovetail.store.layout import spark_dir

_NONE = "-"
_COMPACT = ".compact"
_ATTEMPTS = 3


def read_offsets(root: Path, batch: int, streams: Sequence[str]) -> dict[str, str]:
    """By stream, how far its source is read once `batch` is through. `streams` are in the order of their sources.

    Empty where Spark's log does not tell it: then the batch cannot be read again, and nothing else is wrong.
    """
    try:
        version, _, *lines = (spark_dir(root) / "offsets" / str(batch)).read_text().splitlines()
    except (OSError, ValueError):
        return {}
    if version == "v2":
        named = [line.partition(":") for line in lines]
        return {name: offset for name, _, offset in named if offset != _NONE and name in streams}
    # Without names a stream is told by its place, and one that reads several sources moves all that follow.
    if version != "v1" or len(lines) != len(streams):
        return {}
    return {name: offset for name, offset in zip(streams, lines, strict=True) if offset != _NONE}


def restore_offsets(root: Path, committed_batch: int, committed: Mapping[str, str], present: Collection[str]) -> None:
    """Before a start, have Spark go on with every source where the last commit left it.

    `committed` are the offsets of the last commit, `present` the streams that are read now. A source that was left out
    for a while has no offset in Spark's newest entries, and would begin anew. And a batch that was begun with one that
    is left out now runs without it: its rows come when it is back.
    """
    folder = spark_dir(root) / "offsets"
    numbers = sorted(int(path.name) for path in folder.glob("*") if path.name.isdecimal())
    for number in numbers[-2:]:
        path = folder / str(number)
        version, settings, *lines = path.read_text().splitlines()
        if version != "v2":
            return
        known = {name: offset for name, _, offset in (line.partition(":") for line in lines)}
        offsets = {name: offset for name, offset in known.items() if number <= committed_batch or name in present}
        for name, offset in committed.items():
            if offsets.get(name, _NONE) == _NONE:
                offsets[name] = offset
        if offsets != known:
            draft = folder / f".{number}.restored"
            write_private(draft, "\n".join((version, settings, *(f"{name}:{at}" for name, at in offsets.items()))))
            # Spark's checksum is of what it wrote itself; without one it does not ask.
            (folder / f".{number}.crc").unlink(missing_ok=True)
            draft.replace(path)


def source_dir(root: Path, stream: str, streams: Sequence[str]) -> Path:
    """Where the stream's source keeps its log."""
    sources = spark_dir(root) / "sources"
    return sources / stream if (sources / stream).is_dir() else sources / str(streams.index(stream))


def file_number(offset: str | None) -> int:
    """The last number that an offset of a file source includes; None: it is read from the beginning."""
    return -1 if offset is None else int(json.loads(offset)["logOffset"])


class FileLog:
    """The files that a file source has read, by the numbers in its offsets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[int, list[str]] = {}
        self._read_upto = -1

    def paths(self, lower: int, upper: int) -> list[str]:
        """The files of the numbers from `lower` to `upper`, both included, as URLs."""
        for _ in range(_ATTEMPTS):
            if self._read_upto >= upper:
                break
            try:
                self._read_more()
            except FileNotFoundError:
                continue  # Spark has put them together meanwhile
        if self._read_upto < upper:
            raise HistoryError(f"Spark's log of the files it read ends before number {upper}", where=str(self._folder))
        return [path for number in range(lower, upper + 1) for path in self._paths.get(number, [])]

    def _read_more(self) -> None:
        names = [path.name for path in self._folder.iterdir()]
        compact = max((int(n.removesuffix(_COMPACT)) for n in names if n.endswith(_COMPACT)), default=-1)
        plain = sorted(int(name) for name in names if name.isdecimal())
        if compact > self._read_upto:
            self._take(f"{compact}{_COMPACT}", after=self._read_upto)
            self._read_upto = compact
        for number in plain:
            if number > self._read_upto:
                self._take(str(number), after=self._read_upto)
                self._read_upto = number

    def _take(self, name: str, *, after: int) -> None:
        version, *lines = (self._folder / name).read_text().splitlines()
        if version != "v1":
            raise HistoryError(
                f"Spark's log of the files it read has version {version!r}", where=str(self._folder / name)
            )
        for line in lines:
            entry = json.loads(line)
            if entry["batchId"] > after:
                self._paths.setdefault(entry["batchId"], []).append(entry["path"])
