"""A source that cannot be read at the moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True)
class SourceFailure:
    """Of one stream: why its source fails, since when by the clock, and how often it was tried again."""

    cause: str
    since_s: float
    retries: int = 0

    def to_json(self) -> dict[str, Any]:
        since = datetime.fromtimestamp(self.since_s, UTC).isoformat(timespec="seconds")
        return {"cause": self.cause, "since": since, "retries": self.retries}
