"""What the engine's elementary work costs on a machine, in seconds of one core.

a step:    rows probe, each bucket is searched -> pairs found -> partial results shipped to the next hop, or
its end:   answers built, or rows of an intermediate stored and indexed
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from dovetail.core.errors import StoreError


@dataclass(frozen=True)
class UnitCosts:
    """Seconds per

    `probed`   row (or partial result) that probes at a node
    `searched` such a row and bucket of the store that it probes
    `found`    pair of equal keys and near times
    `tested`   such a pair with a row of an intermediate: the store knows one member's time, so the bounds of
               the others are tested as expressions
    `shipped`  partial result that goes on to a next hop: its next key computed, sent, received, sorted
    `built`    answer: its values fetched and written
    `stored`   row of an intermediate: its values fetched and written, its indexes left out
    `indexed`  such a row and index
    `node`     probe node, bucket and task, however few rows there are
    `message`  piece of partial results that goes to a next hop, however small
    `file`     file of answers or bucket of an intermediate, however small
    `sent`     byte of a row that is sent to a partition which keeps it: packed, handed to Spark and back, unpacked,
               written; about half of it by the sender
    `byte`     byte that is kept during one batch; stored files are mapped, not read, so this is 0 unless a user has a
               price for room
    """

    probed: float
    searched: float
    found: float
    tested: float
    shipped: float
    built: float
    stored: float
    indexed: float
    node: float
    message: float
    file: float
    sent: float = 1.0e-8
    byte: float = 0.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value) or value < 0:
                raise StoreError(
                    f"unit cost {name} is {value!r}",
                    hint="unit costs are seconds, finite and not negative; `dovetail calibrate` measures them",
                )

    def to_json(self) -> dict[str, float]:
        return asdict(self)

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> UnitCosts:
        known = {entry.name for entry in fields(UnitCosts)}
        if set(record) != known:
            raise StoreError(
                f"unit costs have the names {', '.join(sorted(map(str, record)))}",
                hint=f"the names are {', '.join(sorted(known))}; `dovetail calibrate` writes such a record",
            )
        return UnitCosts(**record)


DEFAULT_UNIT_COSTS = UnitCosts(
    probed=2.0e-8,
    searched=1.0e-8,
    found=5.0e-9,
    tested=5.0e-8,
    shipped=1.5e-7,
    built=5.0e-8,
    stored=1.0e-7,
    indexed=2.5e-8,
    node=1.0e-4,
    message=1.7e-4,
    file=5.5e-4,
)
"""Rounded from several runs of `dovetail calibrate` on two cores of an x86-64 cloud machine with Python 3.11. Plans
depend on how the units compare, which differs less between machines than their values."""
