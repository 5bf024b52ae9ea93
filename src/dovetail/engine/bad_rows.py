"""What is known of the bad rows of each stream: how many there were and why, and which are kept aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_BAD_ROWS = 100_000
MAX_BAD_BYTES = 256 << 20
"""So much of a stream is kept aside; what comes beyond it is only counted."""


@dataclass(frozen=True)
class BadRowTotals:
    """Of one stream since its first batch: rows by kind, those that were `overflowed_rows`, those that batches took
    again, and the reason of the last one with its batch.
    """

    rows_by_kind: Mapping[str, int] = field(default_factory=dict)
    overflowed_rows: int = 0
    retried_rows: int = 0
    last_batch: int | None = None
    last_reason: str | None = None

    @property
    def rows(self) -> int:
        return sum(self.rows_by_kind.values())

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "rows_by_kind": dict(self.rows_by_kind)}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> BadRowTotals:
        return BadRowTotals(**record)
