"""Tables and derived tables of a FROM clause to `BoundRelation`s."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from sqlglot import exp

from dovetail.core.errors import QueryError, SqlError, UnsupportedSql
from dovetail.frontend.bind.expressions import ExpressionBinder
from dovetail.frontend.bind.names import (
    BoundRelation,
    VisibleColumn,
    alias_of,
    find_stream,
    relation_of_stream,
    scope_of,
)
from dovetail.frontend.bind.window import bind_window, window_call
from dovetail.frontend.output_names import name_of
from dovetail.frontend.parse.parse_sql import RANGE_KEY, WITHIN_KEY
from dovetail.frontend.parse.source_text import SourceText
from dovetail.frontend.parse.unsupported import refuse, refuse_leftovers, refuse_node
from dovetail.query.expression import Call, Column, Expression, all_of, conjuncts_of, rename_relations, walk
from dovetail.query.join_query import WINDOW_END, WINDOW_START, HopWindow
from dovetail.query.stream import Stream
from dovetail.query.types import BOOLEAN, TIMESTAMP, WINDOW

MAX_PARTS = 20_000
MAX_WINDOWS_OF_A_ROW = 1_000
"""Of a column's expression."""


class RelationBinder:
    """Binds what stands between FROM and WHERE, for one text and one set of streams."""

    def __init__(self, streams: Mapping[str, Stream], source: SourceText, timezone: str) -> None:
        self.streams = streams
        self.source = source
        self.timezone = timezone

    def bind(self, node: exp.Expr) -> BoundRelation:
        if isinstance(node, exp.Table):
            relation = self._table(node)
        elif isinstance(node, exp.Subquery):
            relation = self._derived_table(node)
        else:
            raise refuse_node(node, self.source)
        return replace(relation, within_us=node.meta.get(WITHIN_KEY))

    def _table(self, node: exp.Table) -> BoundRelation:
        if not isinstance(node.this, exp.Identifier):
            hint = "register the rows as a stream and write its name"
            raise refuse("a table function", self.source.where(node), hint)
        refuse_leftovers(node, ("this", "alias"), self.source)
        if RANGE_KEY in node.meta:
            hint = "write it in the outermost FROM, or window(ts, size, slide) AS w in a derived table"
            raise refuse("a window in brackets inside a subquery", self.source.where(node), hint)
        stream = find_stream(node, self.streams, self.source)
        return relation_of_stream(stream, alias_of(node, node.name, self.source))

    def _derived_table(self, node: exp.Subquery) -> BoundRelation:
        refuse_leftovers(node, ("this", "alias"), self.source)
        select = node.this
        if not isinstance(select, exp.Select):
            raise refuse_node(select, self.source)
        inner = self._single_relation(select)
        alias = alias_of(node, None, self.source)
        return _renamed(self._select_over(select, inner), alias)

    def _single_relation(self, select: exp.Select) -> BoundRelation:
        from_clause = select.args.get("from_")
        if select.args.get("joins") or not isinstance(from_clause, exp.From):
            raise UnsupportedSql(
                "a derived table reads one stream",
                where=self.source.where(select),
                hint="join all streams in the outer FROM, each in its own derived table if need be",
            )
        refuse_leftovers(from_clause, ("this",), self.source)
        inner = self.bind(from_clause.this)
        if inner.within_us is not None:
            hint = "write WITHIN after the derived table's alias"
            raise refuse("WITHIN inside a derived table", self.source.where(from_clause), hint)
        return inner

    def _select_over(self, select: exp.Select, inner: BoundRelation) -> BoundRelation:
        """`inner` as seen through a SELECT with an optional WHERE."""
        refuse_leftovers(select, ("expressions", "from_", "where"), self.source)
        scope = scope_of(inner, self.source)
        binder = ExpressionBinder(scope, self.timezone)
        selection = [*conjuncts_of(inner.selection), *self._where(select, binder)]
        hop_window = inner.hop_window
        columns: list[VisibleColumn] = []
        for item in select.expressions:
            window = window_call(item.this if isinstance(item, exp.Alias) else item)
            if window is not None:
                if hop_window is not None:
                    raise refuse("a second window()", self.source.where(item), "use one window() per derived table")
                hop_window, column = self._bind_window(window, item, binder, inner)
                columns.append(column)
                time_column = Column(inner.alias, hop_window.time_column, TIMESTAMP)
                time_type = inner.stream.type_of(hop_window.time_column) or TIMESTAMP
                time_column = replace(time_column, type=time_type)
                # Spark gives a row without a time no window, so the row is gone.
                selection.append(Call("is_not_null", (time_column,), BOOLEAN))
            else:
                columns.extend(select_item(item, binder))
        self._check_unique(columns, select)
        self._check_size(columns, select)
        return replace(inner, columns=tuple(columns), selection=all_of(tuple(selection)), hop_window=hop_window)

    def _where(self, select: exp.Select, binder: ExpressionBinder) -> tuple[Expression, ...]:
        where = select.args.get("where")
        if where is None:
            return ()
        refuse_leftovers(where, ("this",), self.source)
        return conjuncts_of(binder.bind_filter(where.this))

    def _check_unique(self, columns: list[VisibleColumn], select: exp.Select) -> None:
        count_by_name = Counter(column.name.lower() for column in columns)
        repeated = sorted(name for name, count in count_by_name.items() if count > 1)
        if repeated:
            raise SqlError(
                f"a derived table has two columns called {repeated[0]!r}",
                where=self.source.where(select),
                hint="rename one with AS",
            )

    def _check_size(self, columns: list[VisibleColumn], select: exp.Select) -> None:
        """A column stands for its expression wherever it is used: twice in each of 40 tables makes 2^40."""
        for column in columns:
            if any(True for _ in islice(walk(column.expression), MAX_PARTS, None)):
                raise UnsupportedSql(
                    f"column {column.name!r} of a derived table is made of more than {MAX_PARTS:,} parts",
                    where=self.source.where(select),
                    hint="use the column of the table inside it fewer times",
                )

    def _bind_window(
        self, call: exp.Anonymous, item: exp.Expr, binder: ExpressionBinder, inner: BoundRelation
    ) -> tuple[HopWindow, VisibleColumn]:
        read = bind_window(call, binder)
        try:
            hop_window = HopWindow(read.time.name, read.size_us, read.slide_us, read.offset_us)
        except QueryError as error:
            where = self.source.where(call)
            raise UnsupportedSql(str(error), where=where, hint="window(ts, size, slide, offset)") from None
        if read.size_us > MAX_WINDOWS_OF_A_ROW * read.slide_us:
            raise UnsupportedSql(
                f"each row is in {-(-read.size_us // read.slide_us):,} windows, and would be kept in each of them",
                where=self.source.where(call),
                hint=f"slide by at least 1/{MAX_WINDOWS_OF_A_ROW:,} of the size, or join by BETWEEN on event times",
            )
        fields = tuple(Column(inner.alias, name, read.time.type) for name in (WINDOW_START, WINDOW_END))
        name = item.alias if isinstance(item, exp.Alias) else "window"
        return hop_window, VisibleColumn(name, Call("struct", fields, WINDOW))


def select_item(item: exp.Expr, binder: ExpressionBinder) -> tuple[VisibleColumn, ...]:
    """The columns of one item of a SELECT list."""
    source = binder.source
    star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
    if isinstance(star, exp.Star):
        refuse_leftovers(star, (), source)
        alias = item.table if isinstance(item, exp.Column) else None
        if isinstance(item, exp.Column):
            refuse_leftovers(item, ("this", "table"), source)
        return binder.scope.star(alias or None, source.where(item))
    if isinstance(item, exp.Alias):
        refuse_leftovers(item, ("this", "alias"), source)
        return (VisibleColumn(item.alias, binder.bind(item.this)),)
    expression = binder.bind(item)
    return (VisibleColumn(name_of(item, expression, source), expression),)


def _renamed(relation: BoundRelation, alias: str) -> BoundRelation:
    names = {relation.alias: alias}
    columns = tuple(VisibleColumn(c.name, rename_relations(c.expression, names)) for c in relation.columns)
    return replace(relation, alias=alias, columns=columns, selection=rename_relations(relation.selection, names))
