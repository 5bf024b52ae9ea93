"""An input whose rate rises, stays, flickers and falls, as files that appear while a session runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.replay import StreamFolder

STREAMS = ("a", "b")
KEYS = 200_000
FIRST_TIME_US = 1_700_000_000_000_000
FILE_S = 1.0
"""A file of each stream a second, so that batches differ in their rows and not in their number of files."""


@dataclass(frozen=True)
class Phase:
    """For `seconds` the rate is a multiple of the first one's; each factor holds for a second, then the next."""

    name: str
    seconds: int
    factors: tuple[float, ...]


@dataclass(frozen=True)
class RateProfile:
    """`rows_per_s` of each stream at factor 1."""

    rows_per_s: int
    phases: tuple[Phase, ...]
    seed: int

    @property
    def seconds(self) -> int:
        return sum(phase.seconds for phase in self.phases)

    def rows_by_second(self) -> list[int]:
        return [
            round(self.rows_per_s * phase.factors[second % len(phase.factors)])
            for phase in self.phases
            for second in range(phase.seconds)
        ]

    def bounds(self, name: str) -> tuple[int, int]:
        """The seconds in which a phase begins and ends."""
        place = next(place for place, phase in enumerate(self.phases) if phase.name == name)
        begin = sum(phase.seconds for phase in self.phases[:place])
        return begin, begin + self.phases[place].seconds


def stream_folders(folder: Path) -> list[StreamFolder]:
    return [StreamFolder(name, folder / name, "id BIGINT, ts TIMESTAMP, k INT", "ts") for name in STREAMS]


@dataclass(frozen=True)
class Fed:
    """A second's files: when they were there, and how many rows there were with them, over both streams."""

    at_s: float
    rows_so_far: int


class Feeder:
    """A thread that drops a second's files of both streams every second, whether anybody keeps up or not."""

    def __init__(self, profile: RateProfile, folders: Sequence[StreamFolder]) -> None:
        self._rows = profile.rows_by_second()
        self._folders = folders
        self._chance = np.random.default_rng(profile.seed)
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="dovetail-feeder", daemon=True)
        self.began_s = 0.0
        self.fed: list[Fed] = []
        for folder in folders:
            folder.path.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        self.began_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended.set()
        self._thread.join()

    def join(self) -> None:
        self._thread.join()

    def _feed(self) -> None:
        rows_so_far = 0
        for second, rows in enumerate(self._rows):
            tables = [self._table(second, rows) for _ in self._folders]
            if self._is_ended.wait(max(self.began_s + (second + 1) * FILE_S - time.monotonic(), 0.0)):
                return
            for folder, table in zip(self._folders, tables, strict=True):
                # Spark takes no file whose name begins with a dot, so it never sees half of one.
                hidden = folder.path / f".{second:05d}"
                pq.write_table(table, hidden)
                hidden.rename(folder.path / f"{second:05d}.parquet")
            rows_so_far += rows * len(self._folders)
            self.fed.append(Fed(time.monotonic() - self.began_s, rows_so_far))

    def _table(self, second: int, rows: int) -> pa.Table:
        times = FIRST_TIME_US + second * 1_000_000 + np.sort(self._chance.integers(0, 1_000_000, rows))
        return pa.table(
            {
                "id": np.arange(rows) + second * 1_000_000,
                "ts": pa.array(times).view(pa.timestamp("us", tz="UTC")),
                "k": self._chance.integers(0, KEYS, rows).astype(np.int32),
            }
        )
