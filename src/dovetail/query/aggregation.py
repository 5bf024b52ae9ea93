"""What a query asks of groups of its joined rows: keys, a window, aggregates, HAVING (B7, S8).

    SELECT v.lang, window.start, COUNT(*) FROM ... GROUP BY v.lang, window(w.ts, '10 seconds') HAVING COUNT(*) > 5

    keys (v.lang)   window (w.ts, 10 s)   aggregates (COUNT(*))   having gt(group.agg0, 5)
    output (group.key0, group."window.start", group.agg0)

`keys` and the aggregates' arguments speak of the query's relations. `having` and the query's output speak of the
relation `GROUP`: columns key0, key1 ..., agg0, agg1 ..., and `window.start`, `window.end`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dovetail.core.errors import QueryError
from dovetail.query.durations import check_window
from dovetail.query.expression import TRUE, Column, Expression, relations_of
from dovetail.query.types import SqlType

GROUP = "group"
"""The relation name in expressions that speak of a finished group."""


def key_column(position: int) -> str:
    return f"key{position}"


def aggregate_column(position: int) -> str:
    return f"agg{position}"


class AggregateFunction(Enum):
    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    COUNT_DISTINCT = "count distinct"
    APPROX_COUNT_DISTINCT = "approx count distinct"


@dataclass(frozen=True)
class Aggregate:
    """A function over the values of `arguments` in a group, of Spark's result type.

    Only COUNT may have no argument, COUNT(*), and only the counts may have several: rows in which all are not NULL.
    """

    function: AggregateFunction
    arguments: tuple[Expression, ...]
    type: SqlType

    def __post_init__(self) -> None:
        is_count = self.function in (AggregateFunction.COUNT, AggregateFunction.COUNT_DISTINCT)
        if not self.arguments and self.function is not AggregateFunction.COUNT:
            raise QueryError(f"{self.function.value} needs an argument")
        if len(self.arguments) > 1 and not is_count:
            raise QueryError(f"{self.function.value} takes one argument")

    def __str__(self) -> str:
        return f"{self.function.value}({', '.join(map(str, self.arguments)) or '*'}):{self.type}"


@dataclass(frozen=True)
class GroupWindow:
    """`GROUP BY window(time, size, slide, offset)`: a joined row belongs to every window that its `time` lies in.

    A row without a time belongs to none.
    """

    time: Column
    size_us: int
    slide_us: int
    offset_us: int = 0

    def __post_init__(self) -> None:
        check_window(self.size_us, self.slide_us, self.offset_us)


@dataclass(frozen=True)
class Aggregation:
    """No keys and no window: one group of all rows, which is there even without a row (`is_global`).

    SELECT DISTINCT is an aggregation by all its columns without aggregates. `window_key` is the position of a key that
    is the `window.start` of a derived table over its stream's event time: groups then close as with a `window`.
    """

    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    window: GroupWindow | None = None
    having: Expression = TRUE
    window_key: int | None = None

    def __post_init__(self) -> None:
        if relations_of(self.having) - {GROUP}:
            raise QueryError("HAVING speaks of groups")
        if not (self.keys or self.aggregates or self.window):
            raise QueryError("an aggregation needs keys or aggregates")
        if self.window_key is not None and (self.window or not isinstance(self.keys[self.window_key], Column)):
            raise QueryError("a window key is the start of a derived table's window, and there is no other window")

    @property
    def is_global(self) -> bool:
        return not self.keys and self.window is None

    @property
    def is_windowed(self) -> bool:
        """Whether each group is answered once, when its window closes. Otherwise groups are there for ever."""
        return self.window is not None or self.window_key is not None

    @property
    def window_relation(self) -> str | None:
        """The relation whose event time says in which window a joined row is."""
        if self.window is not None:
            return self.window.time.relation
        if self.window_key is not None:
            return min(relations_of(self.keys[self.window_key]))
        return None

    @property
    def joined_expressions(self) -> tuple[Expression, ...]:
        """Everything that is evaluated on joined rows."""
        arguments = tuple(argument for aggregate in self.aggregates for argument in aggregate.arguments)
        return (*self.keys, *arguments, *((self.window.time,) if self.window else ()))
