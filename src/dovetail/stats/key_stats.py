"""What is known of the keys of one index: how rows spread over key groups, frequent keys, distinct keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.stats.estimate import Estimate
from dovetail.stats.figure import NEWEST_WEIGHT
from dovetail.stats.key_sketch import KeySketch, join_sketches

MAX_HISTOGRAM_GROUPS = 128
"""With more key groups than this, neighbouring ones are counted together."""

SKETCHED_BATCHES = 32
_FORGET_SHARE = 0.001
"""A folded share below this is of a key that was frequent once."""


@dataclass(frozen=True)
class KeysSeen:
    """One batch's rows of an index: `heavy_rows_by_code` has the codes that hold at least 1% of a bucket."""

    rows: int
    rows_by_group: tuple[int, ...]
    heavy_rows_by_code: Mapping[int, int]
    sketch: KeySketch

    def __add__(self, other: KeysSeen) -> KeysSeen:
        """Two buckets of one batch; a key that is heavy in only one of them is counted only there."""
        heavy = dict(self.heavy_rows_by_code)
        for code, rows in other.heavy_rows_by_code.items():
            heavy[code] = heavy.get(code, 0) + rows
        return KeysSeen(
            self.rows + other.rows,
            tuple(a + b for a, b in zip(self.rows_by_group, other.rows_by_group, strict=True)),
            heavy,
            join_sketches((self.sketch, other.sketch)),
        )


@dataclass(frozen=True)
class KeyStats:
    """Folded over batches. Heavy shares are at most what is true; sketches are kept for the newest batches."""

    rows_by_group: tuple[float, ...] = ()
    heavy_share_by_code: Mapping[int, float] = field(default_factory=dict)
    sketch_by_batch: Mapping[int, KeySketch] = field(default_factory=dict)

    def folded(self, seen: KeysSeen, batch: int) -> KeyStats:
        if seen.rows == 0:
            return self
        return KeyStats(
            self._folded_groups(seen.rows_by_group),
            self._folded_heavy(seen),
            {number: sketch for number, sketch in self.sketch_by_batch.items() if number > batch - SKETCHED_BATCHES}
            | {batch: seen.sketch},
        )

    def _folded_groups(self, newest: tuple[int, ...]) -> tuple[float, ...]:
        if len(self.rows_by_group) != len(newest):
            return tuple(map(float, newest))
        return tuple(a + (b - a) * NEWEST_WEIGHT for a, b in zip(self.rows_by_group, newest, strict=True))

    def _folded_heavy(self, seen: KeysSeen) -> dict[int, float]:
        newest = {code: rows / seen.rows for code, rows in seen.heavy_rows_by_code.items()}
        if not self.rows_by_group:
            return newest
        shares = {
            code: (1 - NEWEST_WEIGHT) * self.heavy_share_by_code.get(code, 0.0) + NEWEST_WEIGHT * newest.get(code, 0.0)
            for code in sorted({*self.heavy_share_by_code, *newest})
        }
        return {code: share for code, share in shares.items() if share >= _FORGET_SHARE}

    def distinct(self, since_batch: int) -> Estimate | None:
        """Distinct keys among the rows of the batches from `since_batch` on, of those that are still remembered."""
        sketches = [sketch for batch, sketch in self.sketch_by_batch.items() if batch >= since_batch]
        return join_sketches(sketches).distinct if sketches else None
