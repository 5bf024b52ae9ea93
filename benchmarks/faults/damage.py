"""Damage to the files of a checkpoint, kind by kind: a flipped bit, bytes missing at the end, all of them, no file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

KINDS = {
    "bucket": "buckets/*/*.arrow*",
    "state": "state/*.json",
    "manifest": "manifests/*.json",
    "changelog entry": "changelog/*.json",
    "changelog end": "changelog/last",
    "layout": "dovetail.json",
    "result": "results/*/*.parquet",
    "answers": "answers/*.arrows",
    "bad rows": "bad_rows/*/*.parquet",
    "delivery mark": "delivered/*.json",
    "spark offsets": "spark/offsets/[0-9]*",
    "spark commits": "spark/commits/[0-9]*",
    "spark source log": "spark/sources/*/[0-9]*",
    "spark metadata": "spark/metadata",
}
"""Patterns of the files of each kind that a checkpoint has."""
ON_SPARK_ONLY = ("delivery mark", "spark offsets", "spark commits", "spark source log", "spark metadata")
"""A session in one process has none of these."""


class How(Enum):
    FLIP = "flip a bit"
    TRUNCATE = "truncate"
    EMPTY = "empty"
    DELETE = "delete"


@dataclass(frozen=True)
class Damage:
    """One file of one kind, and what happens to it; `path` is relative to the checkpoint."""

    kind: str
    path: str
    how: How

    def inflict(self, root: Path) -> None:
        path = root / self.path
        if self.how is How.DELETE:
            path.unlink()
            return
        content = path.read_bytes()
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 0x10]) + content[middle + 1 :] if content else b""
        damaged = {How.FLIP: flipped, How.TRUNCATE: content[:middle], How.EMPTY: b""}[self.how]
        # In place, as a failing disk does it: whoever has the file mapped sees it.
        with path.open("r+b") as file:
            file.write(damaged)
            file.truncate(len(damaged))
            os.fsync(file.fileno())


def damages(root: Path, of_each_kind: int, kinds: Iterable[str] = KINDS, ways: Iterable[How] = How) -> Iterator[Damage]:
    """Of every kind some files, from the first to the last, or the newest, each damaged in these ways."""
    for kind, pattern in ((kind, KINDS[kind]) for kind in kinds):
        found = sorted(root.glob(pattern), key=lambda path: (len(path.name), path.as_posix()))
        paths = [path.relative_to(root).as_posix() for path in found]
        last = len(paths) - 1
        places = {round(i * last / (of_each_kind - 1)) for i in range(of_each_kind)} if of_each_kind > 1 else {last}
        for place in sorted(places) if paths else ():
            yield from (Damage(kind, paths[place], how) for how in ways)
