"""What a batch takes at the very least: its searches and the bytes that it touches, as fast as this machine does both.

A search loads a place of a directory and an entry; a pair that is near loads its time and who wants it; an answer loads
a value of each side. These places lie anywhere in what is kept, so each is a load from anywhere in as many bytes. New
rows are read and written once. Nothing else is counted: no code is computed, nothing sorted, no file named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

LOADS_A_SEARCH, LOADS_A_PAIR, LOADS_AN_ANSWER = 2, 2, 2
BYTES_A_ROW = 8 * 8
"""Of the streams of the suite: id, time and six keys."""
PASSES_OVER_NEW_ROWS = 2
TIMED_LOADS, TIMED_BYTES = 1 << 20, 1 << 26
SMALLEST_KEPT, LARGEST_KEPT = 1 << 16, 1 << 28
"""Beyond all caches a load takes as long, however much is kept."""
ROUNDS = 5


@dataclass(frozen=True)
class Touched:
    """Of one batch."""

    new_rows: int
    searches: int
    pairs: int
    answers: int

    @staticmethod
    def in_batch(progress: Mapping[str, Any]) -> Touched:
        units = progress["work"]["partitions"]
        return Touched(
            sum(int(stream["numInputRows"]) for stream in progress["streams"]),
            sum(int(unit["probedRows"]) for unit in units),
            sum(int(unit["pairs"]) for unit in units),
            sum(int(query["numOutputRows"]) for query in progress["queries"]),
        )

    @property
    def loads(self) -> int:
        return self.searches * LOADS_A_SEARCH + self.pairs * LOADS_A_PAIR + self.answers * LOADS_AN_ANSWER

    @property
    def copied_bytes(self) -> int:
        return self.new_rows * BYTES_A_ROW * PASSES_OVER_NEW_ROWS


def floor_s(touched: Touched, live_rows: int) -> float:
    """Seconds of one core."""
    kept = min(max(live_rows * BYTES_A_ROW, SMALLEST_KEPT), LARGEST_KEPT)
    return touched.loads * load_s(kept) + touched.copied_bytes * copied_byte_s()


def load_s(kept_bytes: int) -> float:
    """Of 8 bytes from anywhere in so many."""
    kept = np.arange(kept_bytes // 8)
    places = np.random.default_rng(1).integers(0, len(kept), TIMED_LOADS)
    loaded = np.empty(TIMED_LOADS, kept.dtype)
    return _shortest_s(lambda: np.take(kept, places, out=loaded, mode="clip")) / TIMED_LOADS


def copied_byte_s() -> float:
    source, target = np.ones(TIMED_BYTES, np.uint8), np.empty(TIMED_BYTES, np.uint8)
    return _shortest_s(lambda: np.copyto(target, source)) / TIMED_BYTES


def _shortest_s(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)
