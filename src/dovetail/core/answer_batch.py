"""The answers of one batch, as a tail hands them on: in a session and in a client alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AnswerBatch:
    """All answers that a query found in one batch. Where answers are taken back, a last column says so."""

    batch: int
    rows: tuple[dict[str, Any], ...]
