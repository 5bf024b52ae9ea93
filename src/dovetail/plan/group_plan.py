"""Aggregations as the runtime keeps them (B7, S8): partial groups, who reads them, when windows close.

Joined rows go into groups of an aggregation, not into a store of rows (`Emit.into` is its id). Queries that ask for the
same joined rows, keys and panes share one: it has the partial columns that one of them needs, and each query makes its
own answers of them.

    pane     windows are put together from panes, the longest that every window is made of (gcd of size and slide): a
             row is in one pane, however many windows overlap there
    tables   one row for each group (and pane) and batch: what the batch added; the sum of these rows is the group.
             Aggregates that no number per group can tell (COUNT DISTINCT) have a table of their own beside it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from dovetail.query.aggregation import Aggregate, AggregateFunction, key_column
from dovetail.query.expression import Expression
from dovetail.query.join_query import OutputColumn
from dovetail.query.types import BIGINT, SMALLINT, TINYINT, SqlType

JOINED = "joined"
"""The relation name in users' aggregates: their arguments are columns of the aggregation's joined rows."""
WINDOW_TIME = "window time"
"""The joined rows' column that says in which pane a row is."""
GROUP_INDEX = "[group]"
"""The one index of a table's buckets."""


class Fold(Enum):
    """How a partial column of several rows becomes one."""

    ROWS = "rows"  # how many rows
    COUNT = "count"  # rows in which no argument is NULL
    SUM = "sum"  # exact
    MIN = "min"
    MAX = "max"
    NEW = "new"  # distinct values that no earlier batch brought to the group


FOLDS = {
    AggregateFunction.COUNT: (Fold.COUNT,),
    AggregateFunction.SUM: (Fold.COUNT, Fold.SUM),
    AggregateFunction.AVG: (Fold.COUNT, Fold.SUM),
    AggregateFunction.MIN: (Fold.MIN,),
    AggregateFunction.MAX: (Fold.MAX,),
}
"""What an aggregate with an argument is made of."""


@dataclass(frozen=True)
class PartialColumn:
    """`arguments` name columns of the joined rows, `type` is that of the single one; counts are BIGINT."""

    fold: Fold
    arguments: tuple[str, ...]
    type: SqlType = BIGINT

    @cached_property
    def name(self) -> str:
        return f"{self.fold.value}({', '.join(self.arguments)})"


class Detail(Enum):
    """What a table keeps beside the groups."""

    NONE = "groups"
    DISTINCT = "distinct"  # the values that were seen
    SKETCH = "sketch"  # registers of a HyperLogLog


COUNTED_BY_DETAIL = {
    Detail.DISTINCT: AggregateFunction.COUNT_DISTINCT,
    Detail.SKETCH: AggregateFunction.APPROX_COUNT_DISTINCT,
}
"""The aggregate that is answered from such a table."""


@dataclass(frozen=True)
class GroupTable:
    """Rows by `keys`: those of the group first, `group_keys` of them, then what the detail adds."""

    id: str
    keys: tuple[tuple[str, SqlType], ...]
    group_keys: int
    columns: tuple[PartialColumn, ...]
    is_paned: bool
    detail: Detail = Detail.NONE
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pane:
    """Panes are [start, start + width_us), start = offset_us modulo the width.

    `is_start`: the window time of a row is the start of its pane already. `closing` says of every stream how much later
    than the window's relation its rows may be; None if nothing says so: then no window ever closes.
    """

    width_us: int
    offset_us: int
    is_start: bool
    time_type: SqlType
    closing: tuple[tuple[str, int], ...] | None

    def closed_until(self, watermark_us_by_stream: Mapping[str, int]) -> int | None:
        """Windows that end at or before this are closed; None when none can be said to be."""
        if self.closing is None or any(stream not in watermark_us_by_stream for stream, _ in self.closing):
            return None
        return min(watermark_us_by_stream[stream] - upper_us for stream, upper_us in self.closing)


@dataclass(frozen=True)
class UserWindow:
    """Windows [start, start + size_us), start = offset_us modulo slide_us; None of an offset: any start is one."""

    size_us: int
    slide_us: int
    offset_us: int | None

    def first_open(self, closed_until_us: int) -> int:
        """The earliest start of a window that is not closed: all panes before it are done with."""
        if self.offset_us is None:
            return closed_until_us - self.size_us + 1
        start = closed_until_us - self.size_us + 1
        return start + (self.offset_us - start) % self.slide_us


@dataclass(frozen=True)
class GroupUser:
    """A query that reads the groups: it counts what was joined from `first_batch` on.

    Arguments of `aggregates` are columns of the relation `JOINED`; `having` and `output` speak of groups.
    """

    query: str
    first_batch: int
    aggregates: tuple[Aggregate, ...]
    having: Expression
    output: tuple[OutputColumn, ...]
    is_updating: bool
    window: UserWindow | None = None


@dataclass(frozen=True)
class GroupPlan:
    """One aggregation. `id` names its query, which joins the rows, and the store of its groups."""

    id: str
    key_types: tuple[SqlType, ...]
    columns: tuple[PartialColumn, ...]
    distinct: tuple[tuple[tuple[str, SqlType], ...], ...]
    """Of each COUNT DISTINCT the arguments, with their types."""
    sketches: tuple[str, ...]
    """Arguments of approximate counts."""
    users: tuple[GroupUser, ...]
    pane: Pane | None = None

    def __post_init__(self) -> None:
        if not self.users:
            raise ValueError(f"nobody reads {self.id}")
        if any((user.window is None) != (self.pane is None) for user in self.users):
            raise ValueError(f"{self.id}: windows are made of panes, and panes are for windows")

    @property
    def is_global(self) -> bool:
        """One group, which is there even without a row."""
        return not self.key_types and self.pane is None

    @cached_property
    def keys(self) -> tuple[tuple[str, SqlType], ...]:
        return tuple((key_column(place), kind) for place, kind in enumerate(self.key_types))

    @cached_property
    def table(self) -> GroupTable:
        counted: tuple[PartialColumn, ...] = ()
        if self.pane is None:
            counted = tuple(PartialColumn(Fold.NEW, tuple(name for name, _ in values)) for values in self.distinct)
        return GroupTable(self.id, self.keys, len(self.keys), (*self.columns, *counted), self.pane is not None)

    @cached_property
    def details(self) -> tuple[GroupTable, ...]:
        count = len(self.keys)
        distinct = (
            GroupTable(
                f"{self.id}/distinct({', '.join(name for name, _ in values)})",
                (*self.keys, *values),
                count,
                (),
                self.pane is not None,
                Detail.DISTINCT,
                tuple(name for name, _ in values),
            )
            for values in self.distinct
        )
        sketches = (
            GroupTable(
                f"{self.id}/sketch({argument})",
                (*self.keys, ("register", SMALLINT)),
                count,
                (RANK,),
                self.pane is not None,
                Detail.SKETCH,
                (argument,),
            )
            for argument in self.sketches
        )
        return (*distinct, *sketches)

    @cached_property
    def tables(self) -> tuple[GroupTable, ...]:
        return (self.table, *self.details)

    def open_from(self, closed_until_us: int | None) -> int | None:
        """The time before which all panes are done with; None if nothing can be said."""
        if closed_until_us is None:
            return None
        return min(user.window.first_open(closed_until_us) for user in self.users if user.window is not None)


RANK = PartialColumn(Fold.MAX, ("rank",), TINYINT)
ROWS = PartialColumn(Fold.ROWS, ())
