"""SQL text to `JoinQuery`: the front door of the front end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from dovetail.frontend.bind.expressions import ExpressionBinder, compare_expressions
from dovetail.frontend.bind.groups import GroupBinder, distinct_rows, is_aggregation
from dovetail.frontend.bind.names import BoundRelation, Scope, scope_in_subquery, scope_of
from dovetail.frontend.bind.relations import RelationBinder, select_item
from dovetail.frontend.closing_windows import with_closing_window
from dovetail.frontend.outer_joins import (
    JoinForm,
    SubqueryJoin,
    check_alone,
    check_using,
    conjunct_nodes,
    kind_of_join,
    left_scope,
    padded_scope,
    subquery_join,
)
from dovetail.frontend.parse.check_grammar import check_grammar
from dovetail.frontend.parse.parse_sql import WITHIN_KEY, parse_sql, tokens_of
from dovetail.frontend.parse.range_windows import spell_out_ranges
from dovetail.frontend.parse.source_text import SourceText
from dovetail.frontend.parse.unforeseen import unforeseen_as_refusal
from dovetail.frontend.parse.unsupported import refuse, refuse_leftovers
from dovetail.frontend.refuse_failing import TryOut, refuse_failing
from dovetail.frontend.to_join_query import check_relation_count, to_join_query
from dovetail.query.aggregation import Aggregation
from dovetail.query.expression import Call, Expression, conjuncts_of
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import JoinQuery, OutputColumn
from dovetail.query.stream import Stream
from dovetail.query.types import COLLATED_HINT, TIMESTAMP_NTZ, WINDOW

_SELECT_PARTS = ("expressions", "from_", "joins", "where", "group", "having", "distinct")
_JOIN_PARTS = ("this", "on", "using", "kind", "side", "method")

_HINT_BY_OUTPUT_TYPE = {
    "interval": "select both times, or unix_micros(b.ts) - unix_micros(a.ts)",
    "null": "write CAST(NULL AS INT) or another type",
    "window of timestamp_ntz": "select w.start and w.end",
    "collated": f"name the columns that you need, or {COLLATED_HINT}",
}


def compile_sql(
    text: str, streams: Mapping[str, Stream], *, timezone: str = "UTC", try_out: TryOut | None = None
) -> JoinQuery:
    """The query that `text` means over `streams`; `timezone` is the Spark session's.

    With `try_out` expressions that can only fail are refused where they stand.
    """
    source = SourceText(text)
    with unforeseen_as_refusal(source):
        select = parse_sql(text)
        refuse_leftovers(select, _SELECT_PARTS, source)
        spell_out_ranges(select, streams, source)
        query = _QueryReader(streams, source, timezone).read(select)
        check_grammar(tokens_of(text), text)
    if try_out is not None:
        refuse_failing(source, try_out)
    return query


class _QueryReader:
    """Reads the outermost SELECT."""

    def __init__(self, streams: Mapping[str, Stream], source: SourceText, timezone: str) -> None:
        self.source = source
        self.timezone = timezone
        self.relations = RelationBinder(streams, source, timezone)
        self.scope = Scope((), source)
        self.conditions: list[Expression] = []
        self.kind = JoinKind.INNER
        self.kind_place = source.where(0)
        self.where: list[Expression] = []
        self.hidden: tuple[BoundRelation, ...] = ()
        """Relations that no name in SELECT or WHERE speaks of: the right ones of semi and anti joins."""

    def read(self, select: exp.Select) -> JoinQuery:
        from_clause = select.args.get("from_")
        joins = select.args.get("joins") or []
        if from_clause is None:
            check_relation_count(0, select, self.source)
        assert from_clause is not None
        refuse_leftovers(from_clause, ("this",), self.source)
        self._add_relation(from_clause.this)
        for join in joins:
            self._join(join)
        where = select.args.get("where")
        if where is not None:
            refuse_leftovers(where, ("this",), self.source)
            self._read_where(where.this)
        check_relation_count(self._relation_count, from_clause, self.source)
        output, aggregation = self._output(select)
        within_us = select.meta.get(WITHIN_KEY)
        self._refuse_lonely_within(within_us)
        query = to_join_query(
            replace(self.scope, relations=(*self.scope.relations, *self.hidden)),
            self.conditions,
            output,
            aggregation,
            within_us=within_us,
            timezone=self.timezone,
            form=JoinForm(self.kind, self.kind_place, tuple(self.where)),
        )
        place = select.args.get("group") or select
        is_distinct = select.args.get("distinct") is not None
        return with_closing_window(query, self.scope, self.source.where(place), is_distinct=is_distinct)

    def _output(self, select: exp.Select) -> tuple[list[OutputColumn], Aggregation | None]:
        distinct = select.args.get("distinct")
        if distinct is not None:
            refuse_leftovers(distinct, (), self.source)
        if is_aggregation(select):
            if distinct is not None:
                hint = "leave DISTINCT out: with all keys in SELECT the groups are distinct"
                raise refuse("DISTINCT beside aggregates or GROUP BY", self.source.where(select), hint)
            return self._groups(select)
        binder = ExpressionBinder(self.scope, self.timezone)
        output = [column for item in select.expressions for column in self._output_columns(item, binder)]
        return distinct_rows(output, self.scope, select) if distinct is not None else (output, None)

    def _groups(self, select: exp.Select) -> tuple[list[OutputColumn], Aggregation]:
        binder = GroupBinder(self.scope, self.timezone)
        binder.group_by(select)
        output: list[OutputColumn] = []
        aliases = {}
        for item in select.expressions:
            if isinstance(item.this if isinstance(item, exp.Column) else item, exp.Star):
                raise refuse("* in the SELECT of groups", self.source.where(item), "name the grouped columns")
            output += self._output_columns(item, binder)
            if isinstance(item, exp.Alias):
                aliases[item.alias.lower()] = output[-1].expression
        binder.aliases = aliases
        return output, binder.aggregation(select)

    def _output_columns(self, item: exp.Expr, binder: ExpressionBinder) -> list[OutputColumn]:
        columns = select_item(item, binder)
        for column in columns:
            hint = _HINT_BY_OUTPUT_TYPE.get(_kind_of(column.expression))
            if hint is not None:
                what = f"an output column of type {column.expression.type}"
                raise refuse(what, self.source.where(item), hint)
        return [OutputColumn(column.name, column.expression) for column in columns]

    def _refuse_lonely_within(self, within_us: int | None) -> None:
        is_used = within_us is not None or any(relation.within_us is not None for relation in self.scope.relations)
        if is_used and self._relation_count == 1:
            raise refuse("WITHIN over one relation", self.source.where(0), "leave it out: it compares two relations")

    def _add_relation(self, node: exp.Expr) -> None:
        self.scope = self.scope.with_relation(self._bind_relation(node), self.source.where(node))

    def _bind_relation(self, node: exp.Expr) -> BoundRelation:
        if node.args.get("joins"):
            hint = "write the joins one after another without parentheses"
            raise refuse("a join in parentheses", self.source.where(node), hint)
        return self.relations.bind(node)

    def _join(self, join: exp.Join) -> None:
        refuse_leftovers(join, _JOIN_PARTS, self.source)
        kind = kind_of_join(join, self.source)
        self._take_kind(kind, join)
        names = join.args.get("using") or []
        left = self.scope
        if names:
            check_using(kind, join, self.source)
            self._join_using(join.this, names)
        else:
            self._add_relation(join.this)
        if join.args.get("on") is not None:
            self._add_condition(join.args["on"])
        if kind.answers_pairs:
            self.scope = padded_scope(self.scope, kind)
        else:
            self.hidden, self.scope = self.scope.relations[-1:], left_scope(left, self.scope)

    def _take_kind(self, kind: JoinKind, node: exp.Expr) -> None:
        is_taken = self.kind is not JoinKind.INNER
        check_alone(self.kind if is_taken else kind, self._relation_count, node, self.source)
        self.kind, self.kind_place = kind, self.source.where(node)

    @property
    def _relation_count(self) -> int:
        return len(self.scope.relations) + len(self.hidden)

    def _join_using(self, node: exp.Expr, identifiers: list[exp.Expr]) -> None:
        """`USING (k)`: equal columns, shown once, as the one on the left."""
        relation = self._bind_relation(node)
        binder = ExpressionBinder(self.scope, self.timezone)
        for identifier in identifiers:
            reference = exp.column(identifier.name)
            reference.this.meta.update(identifier.meta)
            left, right = self.scope.resolve(reference), scope_of(relation, self.source).resolve(reference)
            self.conditions.extend(conjuncts_of(compare_expressions(binder, identifier, "eq", left, right)))
        names = [identifier.name for identifier in identifiers]
        self.scope = self.scope.with_relation_using(relation, names, self.source.where(node))

    def _add_condition(self, node: exp.Expr) -> None:
        # ON sees only the relations up to its join.
        binder = ExpressionBinder(self.scope, self.timezone)
        self.conditions.extend(conjuncts_of(binder.bind_filter(node)))

    def _read_where(self, node: exp.Expr) -> None:
        for part in conjunct_nodes(node):
            found = subquery_join(part, self.source)
            if found is not None:
                self._join_subquery(found, part)
            else:
                binder = ExpressionBinder(self.scope, self.timezone)
                bind = binder.bind_filter if part is node else binder.bind_condition
                self.where.extend(conjuncts_of(bind(part)))

    def _join_subquery(self, found: SubqueryJoin, node: exp.Expr) -> None:
        self._take_kind(found.kind, node)
        relation = self._bind_relation(found.select.args["from_"].this)
        inner = scope_in_subquery(self.scope, relation, self.source.where(node))
        binder = ExpressionBinder(inner, self.timezone)
        values = [value for item in found.select.expressions for value in _values(item, binder)]
        if found.operand is not None:
            if len(values) != 1:
                hint = "select one column in the subquery"
                raise refuse(f"IN with {len(values)} columns", self.source.where(node), hint)
            operand = ExpressionBinder(self.scope, self.timezone).bind(found.operand)
            condition = compare_expressions(binder, node, "eq", operand, values[0])
            self.conditions.extend(conjuncts_of(condition))
        where = found.select.args.get("where")
        if where is not None:
            refuse_leftovers(where, ("this",), self.source)
            self.conditions.extend(conjuncts_of(binder.bind_filter(where.this)))
        self.hidden = (relation,)


def _values(item: exp.Expr, binder: ExpressionBinder) -> list[Expression]:
    """What an item of a subquery's SELECT stands for; nobody asks for its name."""
    is_star = isinstance(item.this if isinstance(item, exp.Column) else item, exp.Star)
    if is_star or isinstance(item, exp.Alias):
        return [column.expression for column in select_item(item, binder)]
    return [binder.bind(item)]


def _kind_of(expression: Expression) -> str:
    """The type's name; a window's start and end may be of either kind of timestamp."""
    if isinstance(expression, Call) and expression.type == WINDOW and expression.args[0].type == TIMESTAMP_NTZ:
        return "window of timestamp_ntz"
    return expression.type.name
