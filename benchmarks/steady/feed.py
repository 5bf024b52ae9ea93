"""Files that a point's session reads: written ahead, and put before it a batch at a time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.data.workloads import FILE_TIME_START_S, STREAM_NAMES, StreamFiles, Workload, file_name, rows_of_file
from benchmarks.steady.point import Point

ENDLESS = 1_000_000
"""More seconds of event time than any point comes to."""


class Feed:
    """`put` moves what `write_ahead` wrote, so that a file appears whole and writing it costs no batch anything."""

    def __init__(self, point: Point, seed: int, folder: Path) -> None:
        self._workload: Workload = point.workload(ENDLESS, seed)
        self._waiting = folder / "waiting"
        self.folder = folder / "arrived"
        self._written = 0
        self.put_at: list[float] = []
        for stream in STREAM_NAMES:
            (self._waiting / stream).mkdir(parents=True)
            (self.folder / stream).mkdir(parents=True)

    @property
    def batches(self) -> int:
        """How many came so far."""
        return len(self.put_at)

    @property
    def files(self) -> StreamFiles:
        """What came so far, as other systems read it."""
        return StreamFiles(self._workload, self.folder)

    def write_ahead(self, batches: int) -> None:
        for number in range(self._written, self.batches + batches):
            for place, stream in enumerate(STREAM_NAMES):
                path = self._waiting / stream / file_name(number)
                pq.write_table(rows_of_file(self._workload, place, number), path)
                # Spark's file source takes the older file first.
                os.utime(path, (FILE_TIME_START_S + number, FILE_TIME_START_S + number))
            self._written = number + 1

    def put(self) -> None:
        if self.batches == self._written:
            self.write_ahead(1)
        name = file_name(self.batches)
        for stream in STREAM_NAMES:
            (self._waiting / stream / name).rename(self.folder / stream / name)
        self.put_at.append(time.time())
