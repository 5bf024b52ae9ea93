"""Spark's folder as the manifests have it: what each batch adds is noted with its commit, and put back if it is lost.

    before a commit   offsets/N and what is new in sources/S  ->  manifest N
    before a start    Spark's folder as manifest N has it; what is planned beyond N is planned again

Spark knows by offsets/N how far batch N reads, and by the numbered files in sources/S which files that were. Every so
often it puts all files so far into one, n.compact. Whether commits/N is there does not matter: a batch that is
committed here may come again.
"""

from __future__ import annotations

import json
import logging
import re
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from dovetail.core.errors import DamagedFile
from dovetail.core.private_files import private_folder, write_private
from dovetail.store.chain import Chain
from dovetail.store.layout import spark_dir
from dovetail.store.manifest import SourceLog, read_manifests

_COMPACT = ".compact"
_NUMBERED = re.compile(r"\d+(\.compact)?\Z")
_CRC_HEAD_BYTES = 8
_CRC_PIECE_BYTES = 512
_log = logging.getLogger("dovetail")


def read_source_log(root: Path, batch: int, before: SourceLog) -> SourceLog:
    """What Spark's folder has for `batch` and the manifest before has not; nothing if Spark did not note the batch."""
    folder = spark_dir(root)
    files = {} if before.is_known or before.upto else _texts(folder, ["metadata"])
    files |= _texts(folder, [f"offsets/{batch}"])
    if f"offsets/{batch}" not in files:
        return SourceLog()
    # Written anew before a start, with sources that had been left out.
    earlier = _texts(folder, [f"offsets/{batch - 1}"])
    files |= {path: text for path, text in earlier.items() if before.checksums.get(path) not in (None, _crc(text))}
    checksums = dict(before.checksums) | {path: _crc(text) for path, text in files.items()}
    checksums.pop(f"offsets/{batch - 2}", None)
    upto = dict(before.upto)
    for source, number, name in _new_entries(folder, before):
        path = f"sources/{source}/{name}"
        text = (folder / path).read_text()
        files[path] = _newer_lines(text, before.upto.get(source, -1)) if name.endswith(_COMPACT) else text
        if name.endswith(_COMPACT):
            checksums = {known: crc for known, crc in checksums.items() if not _is_before(known, source, number)}
        checksums[path] = _crc(text)
        upto[source] = max(number, upto.get(source, -1))
    return SourceLog(files, checksums, upto)


def mend_spark_dir(chain: Chain) -> None:
    """Before Spark starts: have its folder say what the newest manifest says, and nothing beyond."""
    folder, newest = spark_dir(chain.root), chain.newest
    if newest is None:
        _remove_torn(folder)
        return
    log = newest.source_log
    if not log.is_known:
        _check_old(folder, newest.batch)
    elif any(_checksum(folder / path) != crc for path, crc in log.checksums.items()):
        _log.warning("Spark's folder %s lacks what batch %d read: it is made anew", folder, newest.batch)
        _rebuild(chain, folder, log)
    for name in ("offsets", "commits"):
        for number, path in _numbered(folder / name):
            if number > newest.batch or not _is_sound(path):
                _remove(path)
    for source, number, name in list(_entries(folder)):
        if number > log.upto.get(source, number):
            _remove(folder / "sources" / source / name)


def _rebuild(chain: Chain, folder: Path, log: SourceLog) -> None:
    """Every file that the newest manifest's checksums name, from what all manifests noted."""
    texts: dict[str, str] = {}
    lines: dict[str, list[str]] = {}
    for manifest in read_manifests(chain.root):
        for path, text in sorted(manifest.source_log.files.items(), key=_by_number):
            texts[path] = text
            if path.startswith("sources/"):
                lines.setdefault(Path(path).parent.name, []).extend(text.splitlines()[1:])
                if path.endswith(_COMPACT):
                    texts[path] = "\n".join([text.splitlines()[0], *lines[Path(path).parent.name]])
    for path in log.checksums:
        if path not in texts:
            raise DamagedFile(
                f"Spark's file {path} is lost, and no manifest has it: lost is which rows were read",
                where=str(folder / path),
                hint="restore Spark's folder of the checkpoint from a backup",
            )
        _remove(folder / path)
        private_folder((folder / path).parent)
        write_private(folder / path, texts[path])


def _check_old(folder: Path, batch: int) -> None:
    """A manifest from before they noted this: whether Spark's own log has the batch is all that can be seen."""
    if _checksum(folder / "offsets" / str(batch)) is None:
        raise DamagedFile(
            f"Spark's file offsets/{batch} is missing: lost is how far batch {batch} read its sources",
            where=str(folder),
            hint="restore Spark's folder of the checkpoint from a backup: manifests of that age have no copy of it",
        )


def _remove_torn(folder: Path) -> None:
    """Nothing is committed yet: what a crash left half-written is planned again."""
    paths = [path for name in ("offsets", "commits") for _, path in _numbered(folder / name)]
    paths += [folder / "sources" / source / name for source, _, name in _entries(folder)]
    if not all(map(_is_sound, [*paths, *filter(Path.exists, [folder / "metadata"])])):
        for path in (*paths, folder / "metadata"):
            _remove(path)


def _texts(folder: Path, paths: list[str]) -> dict[str, str]:
    return {path: (folder / path).read_text() for path in paths if (folder / path).is_file()}


def _newer_lines(text: str, after: int) -> str:
    """Of a file that repeats earlier ones, what is new."""
    version, *lines = text.splitlines()
    return "\n".join([version, *(line for line in lines if json.loads(line)["batchId"] > after)])


def _entries(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Source, number and name of every file in the sources' own logs, in the order of their numbers."""
    for source in sorted((folder / "sources").glob("*")):
        for number, path in sorted(_numbered(source)):
            yield source.name, number, path.name


def _new_entries(folder: Path, before: SourceLog) -> Iterator[tuple[str, int, str]]:
    """Those after the last that is known; numbers follow each other, and a folder may have thousands of old ones."""
    for source in sorted((folder / "sources").glob("*")):
        last = before.upto.get(source.name)
        if last is None:
            yield from ((source.name, number, path.name) for number, path in sorted(_numbered(source)))
            continue
        for number in count(last + 1):
            found = [name for name in (f"{number}{_COMPACT}", str(number)) if (source / name).is_file()]
            if not found:
                break
            yield source.name, number, found[0]


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    found = [path for path in folder.glob("[0-9]*") if _NUMBERED.match(path.name)]
    return [(int(path.name.removesuffix(_COMPACT)), path) for path in found]


def _by_number(item: tuple[str, str]) -> tuple[bool, int]:
    name = Path(item[0]).name.removesuffix(_COMPACT)
    return item[0].startswith("sources/"), int(name) if name.isdecimal() else -1


def _is_before(path: str, source: str, number: int) -> bool:
    parts = Path(path).parts
    return parts[:2] == ("sources", source) and int(parts[2].removesuffix(_COMPACT)) < number


def _crc(text: str) -> int:
    return zlib.crc32(text.encode())


def _checksum(path: Path) -> int | None:
    try:
        return zlib.crc32(path.read_bytes())
    except FileNotFoundError:
        return None


def _is_sound(path: Path) -> bool:
    """Whether Spark can read it: not empty, and as the checksums say that Hadoop writes beside it."""
    content = path.read_bytes()
    try:
        sums = path.with_name(f".{path.name}.crc").read_bytes()[_CRC_HEAD_BYTES:]
    except FileNotFoundError:
        return bool(content)
    pieces = [content[at : at + _CRC_PIECE_BYTES] for at in range(0, len(content), _CRC_PIECE_BYTES)]
    return bool(content) and sums == b"".join(zlib.crc32(piece).to_bytes(4, "big") for piece in pieces)


def _remove(path: Path) -> None:
    """With the checksums beside it, which are those of the old bytes."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.unlink(missing_ok=True)
