"""A stream as queries see it: named, typed columns, perhaps an event time."""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.core.errors import StreamError
from dovetail.core.plain_text import is_text
from dovetail.core.stream_description import Column, StreamDescription
from dovetail.query.row_rules import RowRules
from dovetail.query.types import TIMESTAMP_NTZ, SqlType

_US_PER_S = 1_000_000


@dataclass(frozen=True)
class Stream:
    """The declaration of one stream. Without `event_time` it has no watermark and never expires.

    `rules` say which rows it cannot use, and what becomes of them.
    """

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    event_time: str | None = None
    lateness_us: int = 0
    rules: RowRules = field(default_factory=RowRules)

    def __post_init__(self) -> None:
        names = [name for name, _ in self.columns]
        if not is_text(self.name) or not self.name.isidentifier():
            raise StreamError(f"{self.name!r} cannot name a stream", hint="use letters, digits and underscores")
        duplicates = {name for name in names if [n.lower() for n in names].count(name.lower()) > 1}
        if duplicates:
            raise StreamError(
                f"stream {self.name!r} has columns of one name: {', '.join(sorted(duplicates))}",
                hint="name each column once; case makes no difference",
            )
        if self.lateness_us < 0:
            raise StreamError(f"stream {self.name!r}: lateness is negative", hint="use e.g. lateness='2 seconds'")
        if not isinstance(self.event_time, str | None):
            raise StreamError(
                f"stream {self.name!r}: event_time is {self.event_time!r}", hint="give the name of a timestamp column"
            )
        if self.event_time is not None:
            event_type = dict(self.columns).get(self.event_time)
            if event_type is None:
                raise StreamError(
                    f"stream {self.name!r} has no column {self.event_time!r} for its event time",
                    hint=f"one of: {', '.join(names)}",
                )
            if not event_type.is_time:
                raise StreamError(
                    f"stream {self.name!r}: event time {self.event_time!r} is {event_type}, not a timestamp",
                    hint="cast the column to timestamp in the DataFrame",
                )

    @property
    def description(self) -> StreamDescription:
        """As users see it."""
        columns = tuple(Column(name, str(sql_type)) for name, sql_type in self.columns)
        lateness = f"{self.lateness_us / _US_PER_S:g} seconds"
        rules = self.rules
        return StreamDescription(self.name, columns, self.event_time, lateness, rules.on_bad_row, rules.max_ahead)

    @property
    def has_time_zone(self) -> bool:
        """Whether event times are moments, and not readings of some clock."""
        return self.event_time is not None and self.type_of(self.event_time) != TIMESTAMP_NTZ

    def type_of(self, column: str) -> SqlType | None:
        return dict(self.columns).get(column)
