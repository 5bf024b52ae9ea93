"""What is tried, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class HostileQuery:
    """A text that nobody should write. `mechanism` is what it attacks; texts of one mechanism differ in more than size.

    `compares`: if it is answered, Spark in batch must answer the same. Spark does not read every text that we do
    (WITHIN), and some would take it down.
    """

    mechanism: str
    sql: str
    compares: bool = True


def of(mechanism: str, *texts: str, compares: bool = True) -> tuple[HostileQuery, ...]:
    return tuple(HostileQuery(mechanism, text, compares) for text in texts)


class Outcome(StrEnum):
    """How a hostile thing ended. The first five are as it should be."""

    REFUSED = "refused"
    STOPPED = "stopped alone"
    ANSWERED = "answered as Spark does"
    TOOK_NO_PART = "answered, and not compared"
    HELD = "contained"
    POOR_ERROR = "refused without saying what to do"
    WRONG = "answered otherwise than Spark"
    HIT_NEIGHBOUR = "stopped a neighbour"
    LOST_BATCH = "lost a batch"
    HANG = "took too long"
    SERVER_ERROR = "answered with 5xx"


MISSED = frozenset({Outcome.POOR_ERROR, Outcome.WRONG, Outcome.HIT_NEIGHBOUR})
"""What nobody noticed, or was charged to somebody else."""


@dataclass(frozen=True)
class Tried:
    """One hostile thing, where it was tried, and how it ended; `detail` is the error, or what went wrong."""

    mechanism: str
    what: str
    channel: str
    outcome: Outcome
    detail: str = ""
    seconds: float = 0.0

    def to_json(self) -> dict[str, object]:
        return {
            "mechanism": self.mechanism,
            "what": shortened(self.what, 160),
            "channel": self.channel,
            "outcome": str(self.outcome),
            "detail": shortened(self.detail, 240),
            "seconds": round(self.seconds, 2),
        }


def shortened(text: str, size: int) -> str:
    """The beginning of a text, as printable ASCII: some have a million characters, and some cannot be encoded."""
    shown = ascii(text[: size + 1])[1:-1]
    return (
        shown if len(text) <= size and len(shown) <= 2 * size else f"{shown[: 2 * size]}... ({len(text):,} characters)"
    )
