"""What is kept of a stream: columns, selections, indexes, and for how long (C5, B5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dovetail.query.expression import TRUE, Column, Expression
from dovetail.query.join_query import HopWindow
from dovetail.query.types import TIMESTAMP

ROW = "row"
"""The relation name in expressions that speak of one stored row."""

EVENT_TIME = Column(ROW, "event time", TIMESTAMP)
"""The order of an index whose rows ascend by the event time of their store, whatever column that is."""


def store_id(stream: str, hop_window: HopWindow | None) -> str:
    """Stores are named by content: the stream, and the window that multiplies its rows."""
    return stream if hop_window is None else f"{stream}/{hop_window}"


def index_id(keys: tuple[Expression, ...], order: Expression | None = None, placing: int | None = None) -> str:
    """`[x, y]` by key, `[x; z]` by key and then in order of z, `[; z]` in order of z alone.

    `[x, y at x]` is by x and y as well, and placed by x.
    """
    texts = ", ".join(map(_of_row, keys))
    placed = "" if placing is None else f" at {_of_row(keys[placing])}"
    ordered = "" if order is None else f"; {_of_row(order)}"
    return f"[{texts}{placed}{ordered}]"


def _of_row(expression: Expression) -> str:
    return str(expression).removeprefix(f"{ROW}.")


@dataclass(frozen=True)
class IndexPlan:
    """An access path of a store: rows sorted by the code of these key expressions over `row` (B6).

    Rows of one code ascend by `order`, if there is one, and those in which it is NULL are left out: whoever probes
    such an index wants a range of it. Without keys every row has the code 0, so that the whole index is one run: for
    conditions that are no equality. Of several keys the one at `placing` alone may say in which key group a row is:
    then the row lies with those of an index by that key.
    """

    keys: tuple[Expression, ...]
    order: Expression | None = None
    placing: int | None = None

    def __post_init__(self) -> None:
        if self.placing is not None and not (len(self.keys) > 1 and 0 <= self.placing < len(self.keys)):
            raise ValueError("one of several keys may place an index")

    @cached_property
    def id(self) -> str:
        return index_id(self.keys, self.order, self.placing)


@dataclass(frozen=True)
class Retention:
    """A row may find partners until, for every stream here, event time + keep_us < that stream's watermark.

    `keep_us_by_stream` of None means for ever.
    """

    keep_us_by_stream: tuple[tuple[str, int], ...] | None

    @property
    def is_bounded(self) -> bool:
        return self.keep_us_by_stream is not None

    def is_dead(self, max_time_us: int | None, watermark_us_by_stream: dict[str, int]) -> bool:
        """Whether no future row can meet rows whose event times are at most `max_time_us` (None: all NULL)."""
        if self.keep_us_by_stream is None:
            return False
        if max_time_us is None:
            return True
        return all(
            stream in watermark_us_by_stream and max_time_us + keep_us < watermark_us_by_stream[stream]
            for stream, keep_us in self.keep_us_by_stream
        )


@dataclass(frozen=True)
class StorePlan:
    """One store. Rows that none of `selections` wants are not kept; TRUE among them keeps all."""

    id: str
    stream: str
    hop_window: HopWindow | None
    event_time: str | None
    columns: tuple[str, ...]
    selections: tuple[Expression, ...]
    indexes: tuple[IndexPlan, ...]
    retention: Retention

    @cached_property
    def selection_set(self) -> frozenset[Expression]:
        return frozenset(self.selections)

    @property
    def keeps_all(self) -> bool:
        return TRUE in self.selection_set

    @cached_property
    def tested_selections(self) -> tuple[Expression, ...]:
        """The selections that need a bit per row, in the order of their bits."""
        return tuple(selection for selection in self.selections if selection != TRUE)

    @cached_property
    def selection_names(self) -> tuple[str, ...]:
        """Theirs, by which buckets know them."""
        return tuple(map(str, self.tested_selections))
