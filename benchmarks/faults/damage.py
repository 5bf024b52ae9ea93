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
    "backfill bucket": "backfill/*/buckets/*/*.arrow*",
    "backfill state": "backfill/*/state/*.json",
    "backfill manifest": "backfill/*/manifests/*.json",
    "backfill changelog": "backfill/*/changelog/*",
    "backfill layout": "backfill/*/dovetail.json",
    "backfill answers": "backfill/*/answers/*.arrows",
    "delivery mark": "delivered/*.json",
    "spark offsets": "spark/offsets/[0-9]*",
    "spark commits": "spark/commits/[0-9]*",
    "spark source log": "spark/sources/*/[0-9]*",
    "spark metadata": "spark/metadata",
}
"""Patterns of the files of each kind that a checkpoint has."""
ON_SPARK_ONLY = ("delivery mark", "spark offsets", "spark commits", "spark source log", "spark metadata")
"""A session in one process has none of these."""


WITH_RANGES = ("bucket", "answers")
"""A file of these has many things in it: a bit in its middle is only of one of them."""
MIDDLE, PLACES_OF_RANGES = 0.5, (0.1, 0.3, 0.5, 0.7, 0.9)


class How(Enum):
    FLIP = "flip a bit"
    TRUNCATE = "truncate"
    EMPTY = "empty"
    DELETE = "delete"


@dataclass(frozen=True)
class Damage:
    """One file of one kind, and what happens to it; `path` is relative to the checkpoint.

    A bit is flipped behind this share of its bytes.
    """

    kind: str
    path: str
    how: How
    flipped_at: float = MIDDLE

    def inflict(self, root: Path) -> None:
        path = root / self.path
        if self.how is How.DELETE:
            path.unlink()
            return
        content = path.read_bytes()
        at = int(len(content) * self.flipped_at)
        flipped = content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :] if content else b""
        damaged = {How.FLIP: flipped, How.TRUNCATE: content[: len(content) // 2], How.EMPTY: b""}[self.how]
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
            for how in ways:
                flips = PLACES_OF_RANGES if how is How.FLIP and kind in WITH_RANGES else (MIDDLE,)
                yield from (Damage(kind, paths[place], how, at) for at in flips)
