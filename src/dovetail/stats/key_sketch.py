"""How many distinct keys there are, from the smallest codes among them.

Codes are mixed, so the smallest k distinct ones lie as far up as k random points of all distinct keys would: if the
largest of them stands at 1% of the range of codes, there are about 100 k keys. Sketches of several buckets join into
the sketch of all their rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dovetail.stats.estimate import Estimate, Origin

SKETCH_CODES = 128
_ALL_CODES = 2.0**64


@dataclass(frozen=True)
class KeySketch:
    """`codes` are distinct and ascend; fewer than `SKETCH_CODES` are all there are."""

    codes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.codes) > SKETCH_CODES:
            raise ValueError(f"a sketch has at most {SKETCH_CODES} codes, not {len(self.codes)}")

    @property
    def distinct(self) -> Estimate:
        count = len(self.codes)
        if count < SKETCH_CODES:
            return Estimate(float(count), Origin.EXACT)
        return Estimate((count - 1) / (self.codes[-1] + 1) * _ALL_CODES, Origin.ESTIMATED, 2 / math.sqrt(count - 2))


def join_sketches(sketches: Iterable[KeySketch]) -> KeySketch:
    """The sketch of all rows together."""
    codes = {code for sketch in sketches for code in sketch.codes}
    return KeySketch(tuple(sorted(codes)[:SKETCH_CODES]))
