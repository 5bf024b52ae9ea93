"""Which rows a stream cannot use, and what becomes of these bad rows.

A row is bad if its event time lies outside the years that SQL timestamps hold, or too far ahead of the batch in which
it comes: a single such row would take the watermark with it, and make every later row late.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from dovetail.core.errors import StreamError
from dovetail.query.durations import DurationError, duration_text, parse_duration

QUARANTINE, DROP, FAIL = "quarantine", "drop", "fail"
ON_BAD_ROW = (QUARANTINE, DROP, FAIL)
OFF = "off"
ONE_DAY = "1 day"
FIRST_TIME_US = -62_135_596_800_000_000
"""0001-01-01 00:00:00."""
LAST_TIME_US = 253_402_300_799_999_999
"""9999-12-31 23:59:59.999999."""


@dataclass(frozen=True)
class RowRules:
    """`max_ahead_us` is how far a row's event time may be past the batch's own time; None: as far as it likes."""

    on_bad_row: str = QUARANTINE
    max_ahead_us: int | None = 86_400_000_000

    def __post_init__(self) -> None:
        if self.on_bad_row not in ON_BAD_ROW:
            raise StreamError(f"on_bad_row is {self.on_bad_row!r}", hint=f"use one of {', '.join(ON_BAD_ROW)}")
        if self.max_ahead_us is not None and self.max_ahead_us < 0:
            raise StreamError("max_event_time_ahead is negative", hint=f"use e.g. {ONE_DAY!r}, or {OFF!r}")

    @property
    def max_ahead(self) -> str:
        """As users write it."""
        return OFF if self.max_ahead_us is None else duration_text(self.max_ahead_us)

    def last_time_us(self, batch_time_s: float, timezone: str, *, has_zone: bool) -> int:
        """The latest event time that a row of a batch may have; of times without a zone by the session's clock."""
        if self.max_ahead_us is None:
            return LAST_TIME_US
        batch_time_us = int(batch_time_s * 1e6)
        if not has_zone:
            offset = datetime.fromtimestamp(batch_time_s, UTC).astimezone(ZoneInfo(timezone)).utcoffset()
            batch_time_us += 0 if offset is None else int(offset.total_seconds() * 1e6)
        return min(batch_time_us + self.max_ahead_us, LAST_TIME_US)


def lateness_us(stream: str, lateness: str) -> int:
    """How late rows may be, as users write it.

    >>> lateness_us("s", "2 seconds")
    2000000
    """
    try:
        return parse_duration(lateness)
    except DurationError as error:
        raise StreamError(f"stream {stream!r}: lateness: {error}", hint=error.hint) from None


def row_rules(stream: str, on_bad_row: str = QUARANTINE, max_event_time_ahead: str = ONE_DAY) -> RowRules:
    """The rules as users write them.

    >>> row_rules("s", "drop", "2 hours"), row_rules("s", max_event_time_ahead="off").max_ahead_us
    (RowRules(on_bad_row='drop', max_ahead_us=7200000000), None)
    """
    ahead = str(max_event_time_ahead).strip()
    try:
        return RowRules(str(on_bad_row).lower(), None if ahead.lower() == OFF else parse_duration(ahead))
    except DurationError as error:
        hint = f"{error.hint}; or {OFF!r}, if event times may lie far ahead"
        raise StreamError(f"stream {stream!r}: max_event_time_ahead: {error}", hint=hint) from None
    except StreamError as error:
        raise StreamError(f"stream {stream!r}: {error.what}", hint=error.hint) from None
