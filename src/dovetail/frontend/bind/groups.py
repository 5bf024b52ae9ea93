"""GROUP BY, HAVING and the SELECT list of an aggregation to an `Aggregation` and an output that speaks of groups.

As in Spark, an expression over groups is made of aggregates, constants and parts that are grouped as they stand: with
`GROUP BY a.x + 1` one may select `(a.x + 1) * 2`, but not `a.x`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from sqlglot import exp

from dovetail.core.errors import QueryError, SqlError, TypeMismatch, UnknownName, UnsupportedSql
from dovetail.frontend.bind.aggregate_functions import AGGREGATES, aggregate_of
from dovetail.frontend.bind.expressions import ExpressionBinder
from dovetail.frontend.bind.function_arguments import FunctionError
from dovetail.frontend.bind.names import Scope
from dovetail.frontend.bind.node_binder import NodeBinder, Reader
from dovetail.frontend.bind.window import bind_window, window_call
from dovetail.frontend.group_keys import GroupKeys
from dovetail.frontend.parse.unsupported import refuse, refuse_leftovers, refuse_node
from dovetail.query.aggregation import GROUP, Aggregate, Aggregation, GroupWindow, aggregate_column
from dovetail.query.expression import TRUE, Call, Column, Expression, Literal
from dovetail.query.join_query import WINDOW_END, WINDOW_START, OutputColumn
from dovetail.query.types import WINDOW


def is_aggregation(select: exp.Select) -> bool:
    """Whether the SELECT asks for groups; DISTINCT aside."""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(
        isinstance(node, exp.Anonymous) and str(node.this).lower() in AGGREGATES
        for item in select.expressions
        for node in item.walk(prune=lambda node: isinstance(node, exp.Window))
    )


def _read_call(binder: NodeBinder, node: exp.Expr) -> Expression:
    assert isinstance(binder, GroupBinder)
    assert isinstance(node, exp.Anonymous)
    name = str(node.this).lower()
    if name in AGGREGATES:
        return binder.aggregate(node, name)
    if name == "window":
        return binder.same_window(node)
    return ExpressionBinder.readers[exp.Anonymous](binder, node)


def _read_window_field(binder: NodeBinder, node: exp.Expr) -> Expression:
    """`window(ts, '4 seconds').start`"""
    assert isinstance(binder, GroupBinder)
    call, field = window_call(node.this), str(node.args["expression"].name).lower()
    if call is None or field not in ("start", "end"):
        raise refuse_node(node, binder.source)
    struct = binder.same_window(call)
    assert isinstance(struct, Call)
    return struct.args[0 if field == "start" else 1]


class GroupBinder(ExpressionBinder):
    """Binds what is said of groups. `aliases` are the names of SELECT that HAVING may use."""

    readers: ClassVar[Mapping[type[exp.Expr], Reader]] = {
        **ExpressionBinder.readers,
        exp.Anonymous: _read_call,
        exp.Dot: _read_window_field,
    }

    def __init__(self, scope: Scope, timezone: str) -> None:
        super().__init__(scope, timezone)
        self.joined = ExpressionBinder(scope, timezone)
        self.keys = GroupKeys(scope.relations)
        self.window: GroupWindow | None = None
        self.aggregates: dict[Aggregate, Column] = {}
        self.aliases: dict[str, Expression] = {}

    def group_by(self, select: exp.Select) -> None:
        """Read the GROUP BY clause, before anything else."""
        group = select.args.get("group")
        if group is None:
            return
        refuse_leftovers(group, ("expressions",), self.source)
        for written in group.expressions:
            node = self._meant(written, select.expressions)
            call = window_call(node)
            if call is not None:
                self._group_by_window(call)
            else:
                self._add_key(node, written)
        if not (self.keys.expressions or self.window):
            raise refuse("GROUP BY without a key", self.source.where(group), "leave GROUP BY out")

    def aggregation(self, select: exp.Select) -> Aggregation:
        """After SELECT was bound and `aliases` were set."""
        having = select.args.get("having")
        condition: Expression = TRUE
        if having is not None:
            refuse_leftovers(having, ("this",), self.source)
            condition = self.bind_filter(having.this)
        try:
            return Aggregation(self.keys.expressions, tuple(self.aggregates), self.window, condition)
        except QueryError as error:
            place = having if having is not None else select
            raise SqlError(error.what, where=self.source.where(place), hint="add an aggregate or GROUP BY") from None

    def bind(self, node: exp.Expr) -> Expression:
        grouped = self._grouped(node)
        if grouped is not None:
            return grouped
        if isinstance(node, exp.Column):
            raise SqlError(
                f"{node.sql()} is neither grouped nor inside an aggregate",
                where=self.source.where(node),
                hint=f"add it to GROUP BY, or write an aggregate such as MAX({node.sql()})",
            )
        return super().bind(node)

    def aggregate(self, node: exp.Anonymous, name: str) -> Expression:
        self.consume(node, "this", "expressions")
        parts = node.args["expressions"]
        is_distinct = len(parts) == 1 and isinstance(parts[0], exp.Distinct)
        if is_distinct:
            self.consume(parts[0], "expressions")
            parts = parts[0].expressions
        is_star = name == "count" and not is_distinct and len(parts) == 1 and isinstance(parts[0], exp.Star)
        if not parts:
            raise refuse(f"{name}() without an argument", self.source.where(node), "name a column, or write COUNT(*)")
        arguments = () if is_star else tuple(self.joined.bind(part) for part in parts)
        try:
            aggregate = aggregate_of(name, arguments, is_distinct=is_distinct)
        except FunctionError as error:
            raise TypeMismatch(f"{name}(): {error}", where=self.source.where(node), hint=error.hint) from None
        column = Column(GROUP, aggregate_column(len(self.aggregates)), aggregate.type)
        return self.aggregates.setdefault(aggregate, column)

    def same_window(self, call: exp.Anonymous) -> Expression:
        """A window() in SELECT or HAVING, which must be the one that is grouped by."""
        if self.window is not None and self._read_window(call) == self.window:
            return self._window_struct(self.window)
        hint = "group by the same window(), or write window.start and window.end"
        raise refuse("a window() that is not grouped by", self.source.where(call), hint)

    def _grouped(self, node: exp.Expr) -> Expression | None:
        """What the node is of a group, if it is grouped as it stands."""
        if isinstance(node, exp.Column):
            parts = [part.name.lower() for part in node.parts]
            if self.window is not None and parts[0] == "window":
                return self._window_part(node, parts)
            if len(parts) == 1 and parts[0] in self.aliases:
                return self._alias(node, parts[0])
            return self.keys.grouped(self.joined.bind(node))
        if isinstance(node, exp.Literal):
            return None
        try:
            return self.keys.grouped(self.joined.bind(node))
        except SqlError:
            # Aggregates and the like: a part of it may be grouped, and errors are found where they are.
            return None

    def _alias(self, node: exp.Column, name: str) -> Expression:
        meant = self.aliases[name]
        shown = [self.keys.grouped(column.expression) for column in self.scope.shown_as(name)]
        if shown not in ([], [meant]):
            what = f"{node.name!r} is both a column and a name of SELECT"
            raise UnknownName(what, where=self.source.where(node), hint="give the expression in SELECT another name")
        return meant

    def _window_part(self, node: exp.Column, parts: list[str]) -> Expression:
        assert self.window is not None
        if self.scope.shown_as("window"):
            raise refuse("window() beside a column called window", self.source.where(node), "rename the column with AS")
        struct = self._window_struct(self.window)
        fields = {("window",): struct, ("window", "start"): struct.args[0], ("window", "end"): struct.args[1]}
        if tuple(parts) not in fields:
            what = f"unknown field {node.sql()!r}"
            raise UnknownName(what, where=self.source.where(node), hint="write window.start or window.end")
        return fields[tuple(parts)]

    def _window_struct(self, window: GroupWindow) -> Call:
        fields = tuple(Column(GROUP, name, window.time.type) for name in (WINDOW_START, WINDOW_END))
        return Call("struct", fields, WINDOW)

    def _meant(self, node: exp.Expr, items: Sequence[exp.Expr]) -> exp.Expr:
        """What an ordinal or a name of SELECT in GROUP BY stands for; columns go before names of SELECT."""
        if isinstance(node, exp.Literal) and not node.args.get("is_string") and str(node.this).isdigit():
            position = int(node.this)
            if not 1 <= position <= len(items):
                what = f"GROUP BY {position}: SELECT has {len(items)} columns"
                raise SqlError(what, where=self.source.where(node), hint=f"use 1 to {len(items)}")
            item = items[position - 1]
            return item.this if isinstance(item, exp.Alias) else item
        is_name = isinstance(node, exp.Column) and len(node.parts) == 1 and not isinstance(node.this, exp.Star)
        if is_name and not self.scope.shown_as(node.name):
            named = [item for item in items if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower()]
            if len(named) > 1:
                what = f"SELECT has two columns called {node.name!r}"
                raise UnknownName(what, where=self.source.where(node), hint="rename one with AS")
            return named[0].this if named else node
        return node

    def _add_key(self, node: exp.Expr, written: exp.Expr) -> None:
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            raise refuse("GROUP BY *", self.source.where(written), "name the columns")
        key = self.joined.bind(node)
        if isinstance(key, Literal) and node.find(exp.Column) is None:
            raise refuse("GROUP BY a constant", self.source.where(written), "leave it out")
        if not self.keys.add(key):
            hint = "group by its start, or by its parts"
            raise refuse(f"GROUP BY a {key.type}", self.source.where(written), hint)

    def _group_by_window(self, call: exp.Anonymous) -> None:
        window = self._read_window(call)
        if self.window not in (None, window):
            raise refuse("a second window()", self.source.where(call), "group by one window() a query")
        relation = next(r for r in self.scope.relations if r.alias == window.time.relation)
        if relation.stream.event_time != window.time.name:
            event_time = relation.stream.event_time
            hint = (
                f"use {relation.alias}.{event_time}, its event time"
                if event_time is not None
                else f"declare it: create_stream({relation.stream.name!r}, df, event_time={window.time.name!r})"
            )
            what = f"GROUP BY window() over {window.time}, which is no event time and so never closes,"
            raise refuse(what, self.source.where(call), hint)
        self.window = window

    def _read_window(self, call: exp.Anonymous) -> GroupWindow:
        read = bind_window(call, self.joined)
        try:
            return GroupWindow(read.time, read.size_us, read.slide_us, read.offset_us)
        except QueryError as error:
            hint = "window(ts, size, slide, offset)"
            raise UnsupportedSql(error.what, where=self.source.where(call), hint=hint) from None


def distinct_rows(
    output: Sequence[OutputColumn], scope: Scope, place: exp.Expr
) -> tuple[list[OutputColumn], Aggregation]:
    """SELECT DISTINCT: the groups by all columns of the SELECT list."""
    keys = GroupKeys(scope.relations)
    for column in output:
        if not keys.add(column.expression):
            what = f"DISTINCT over a {column.type}"
            raise refuse(what, scope.source.where(place), "select its start and its end")
    grouped = []
    for column in output:
        of_group = keys.grouped(column.expression)
        assert of_group is not None
        grouped.append(OutputColumn(column.name, of_group))
    return grouped, Aggregation(keys.expressions, ())
