"""A stream as users see it, in a session and in a client alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """`type` is written as in SQL."""

    name: str
    type: str


@dataclass(frozen=True)
class StreamDescription:
    """A stream and its columns, each with a name and a type as SQL writes it.

    `lateness` is how far a row may be behind the newest before it counts as late, such as «2 seconds».
    `on_bad_row` is what becomes of rows that cannot be used: quarantine, drop or fail. Those are bad, too, whose event
    time is further past the batch's own time than `max_event_time_ahead`, such as «1 day»; «off» bounds nothing.
    `failing` says why its source cannot be read now; None if it can.
    """

    name: str
    columns: tuple[Column, ...]
    event_time: str | None
    lateness: str
    on_bad_row: str = "quarantine"
    max_event_time_ahead: str = "1 day"
    failing: str | None = None
