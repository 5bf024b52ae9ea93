"""Outer, semi and anti joins, and what means the same: EXISTS, NOT EXISTS and IN over a stream.

    WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND ...)     a LEFT SEMI JOIN b ON b.k = a.k AND ...
    WHERE NOT EXISTS (SELECT 1 FROM b WHERE ...)               a LEFT ANTI JOIN b ON ...
    WHERE a.x IN (SELECT y FROM b WHERE ...)                   a LEFT SEMI JOIN b ON a.x = y AND ...

Conditions of ON (or of the subquery) say who are partners; those of WHERE filter what the join answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dovetail.core.errors import UnsupportedSql
from dovetail.frontend.bind.names import Scope, VisibleColumn
from dovetail.frontend.parse.source_text import SourceText
from dovetail.frontend.parse.unsupported import HINT_BY_JOIN, refuse, refuse_leftovers, refuse_node
from dovetail.query.expression import TRUE, Call, Column, Expression, Literal, all_of, relations_of
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import PRESENT, TimeBound
from dovetail.query.types import BOOLEAN, WINDOW

_KIND_BY_WORDS = {
    ("", ""): JoinKind.INNER,
    ("", "INNER"): JoinKind.INNER,
    ("", "CROSS"): JoinKind.INNER,
    ("LEFT", ""): JoinKind.LEFT,
    ("LEFT", "OUTER"): JoinKind.LEFT,
    ("RIGHT", ""): JoinKind.RIGHT,
    ("RIGHT", "OUTER"): JoinKind.RIGHT,
    ("FULL", ""): JoinKind.FULL,
    ("FULL", "OUTER"): JoinKind.FULL,
    ("", "SEMI"): JoinKind.SEMI,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("", "ANTI"): JoinKind.ANTI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
}


@dataclass(frozen=True)
class SubqueryJoin:
    """A condition of WHERE over a subquery: a join with the subquery's stream; `operand` is what stands before IN."""

    kind: JoinKind
    select: exp.Select
    operand: exp.Expr | None = None


@dataclass(frozen=True)
class JoinForm:
    """The kind of a query's join, where in the text it says so, and what WHERE says of its answers."""

    kind: JoinKind
    place: str
    where: tuple[Expression, ...]

    def is_about_partners(self, condition: Expression, aliases: Sequence[str]) -> bool:
        """Whether a condition of ON leaves rows in that fail it: they stay, and have no partner."""
        lone = {aliases[place] for place in self.kind.lone_places}
        return bool(lone) and (relations_of(condition) <= lone) and len(relations_of(condition)) < 2

    def selected(self, aliases: Sequence[str]) -> tuple[str, tuple[Expression, ...]] | None:
        """The relation whose rows no answer lacks, and the conditions of WHERE on it alone; None if there is none."""
        if self.kind in (JoinKind.INNER, JoinKind.FULL):
            return None
        alias = aliases[1] if self.kind is JoinKind.RIGHT else aliases[0]
        return alias, tuple(condition for condition in self.where if relations_of(condition) <= {alias})

    def answered_where(self, aliases: Sequence[str]) -> Expression:
        """The other conditions of WHERE; those of an inner join are conditions on its pairs like any other."""
        if self.kind is JoinKind.INNER:
            return TRUE
        selected = self.selected(aliases)
        own = () if selected is None else selected[1]
        return all_of(tuple(condition for condition in self.where if condition not in own))


def check_decided(form: JoinForm, event_times: Mapping[str, Column | None], bounds: Sequence[TimeBound]) -> None:
    """Whether time tells of every row that is answered without a partner when none can come any more."""
    aliases = list(event_times)
    bounded = {(bound.earlier, bound.later) for bound in bounds}
    for alias in (aliases[place] for place in form.kind.lone_places):
        (other,) = (each for each in aliases if each != alias)
        if (alias, other) in bounded:
            continue
        own, partners = event_times[alias], event_times[other]
        hint = "give both streams an event time, and bound the join in time"
        if own is not None and partners is not None:
            hint = f"write in ON that {partners} <= {own} + INTERVAL 10 SECONDS, or WITHIN 10 SECONDS at the end"
        raise UnsupportedSql(
            f"a {form.kind.value} join needs to know when a row of {alias} has no partner:"
            f" no condition says how much later one may come in {other}",
            where=form.place,
            hint=hint,
        )


def kind_of_join(join: exp.Join, source: SourceText) -> JoinKind:
    side, kind, method = (str(join.args.get(key) or "").upper() for key in ("side", "kind", "method"))
    if not method and (side, kind) in _KIND_BY_WORDS:
        return _KIND_BY_WORDS[side, kind]
    words = next(word for word in (method, kind, side) if word)
    if side == "RIGHT" and kind in ("SEMI", "ANTI"):
        raise refuse(f"RIGHT {kind} JOIN", source.where(join), f"swap the relations and write LEFT {kind} JOIN")
    name, hint = HINT_BY_JOIN.get(words, (f"{words} JOIN", "use JOIN ... ON"))
    raise refuse(name, source.where(join), hint)


def check_using(kind: JoinKind, join: exp.Join, source: SourceText) -> None:
    """In a right or full join the shared column is that of either side."""
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        hint = "write ON a.key = b.key, and select a.key, b.key or coalesce(a.key, b.key)"
        raise refuse(f"USING in a {kind.value} join", source.where(join), hint)


def check_alone(kind: JoinKind, relation_count: int, node: exp.Expr, source: SourceText) -> None:
    """Whether the relations that are joined so far leave room for a join of this kind."""
    if kind is not JoinKind.INNER and relation_count != 1:
        what = f"a {kind.value} join in a query of more than two relations is not supported"
        hint = "join two relations: the others need queries of their own"
        raise UnsupportedSql(what, where=source.where(node), hint=hint)


def padded_scope(scope: Scope, kind: JoinKind) -> Scope:
    """What SELECT and WHERE see: a column that a derived table computes is NULL where its row is missing."""
    padded = {scope.relations[1 - place].alias for place in kind.lone_places}
    new_by_column = {
        id(column): _padded(relation.alias, column)
        for relation in scope.relations
        if relation.alias in padded
        for column in relation.columns
    }

    def seen(columns: tuple[VisibleColumn, ...]) -> tuple[VisibleColumn, ...]:
        return tuple(new_by_column.get(id(column), column) for column in columns)

    relations = tuple(replace(relation, columns=seen(relation.columns)) for relation in scope.relations)
    return replace(scope, relations=relations, shown=seen(scope.shown))


def left_scope(left: Scope, joined: Scope) -> Scope:
    """What SELECT and WHERE see of a semi or anti join: the left side, columns of USING first."""
    own = {id(column) for column in left.shown}
    shown = tuple(column for column in joined.shown if id(column) in own)
    return replace(joined, relations=joined.relations[: len(left.relations)], shown=shown)


def _padded(alias: str, column: VisibleColumn) -> VisibleColumn:
    expression = column.expression
    if isinstance(expression, Column) or expression.type == WINDOW:
        return column
    present = Column(alias, PRESENT, BOOLEAN)
    return replace(
        column, expression=Call("case", (present, expression, Literal(None, expression.type)), expression.type)
    )


def conjunct_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a condition that AND connects, in the order of the text."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.And):
            waiting += [part.expression, part.this]
        else:
            yield part


def subquery_join(node: exp.Expr, source: SourceText) -> SubqueryJoin | None:
    """What a part of WHERE means as a join; None if it is a condition like any other."""
    part, is_negated = _bare(node), False
    while isinstance(part, exp.Not):
        part, is_negated = _bare(part.this), not is_negated
    if isinstance(part, exp.Exists):
        refuse_leftovers(part, ("this",), source)
        return SubqueryJoin(JoinKind.ANTI if is_negated else JoinKind.SEMI, _select_of(part.this, source))
    if isinstance(part, exp.In) and part.args.get("query") is not None:
        if is_negated:
            hint = (
                "write NOT EXISTS (SELECT 1 FROM b WHERE b.y = a.x AND ...): with NOT IN a single NULL in the "
                "subquery leaves no row at all"
            )
            raise refuse("NOT IN with a subquery", source.where(part), hint)
        refuse_leftovers(part, ("this", "query"), source)
        return SubqueryJoin(JoinKind.SEMI, _select_of(part.args["query"], source), part.this)
    return None


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _select_of(node: exp.Expr, source: SourceText) -> exp.Select:
    if isinstance(node, exp.Subquery):
        refuse_leftovers(node, ("this",), source)
        node = node.this
    if not isinstance(node, exp.Select):
        raise refuse_node(node, source)
    refuse_leftovers(node, ("expressions", "from_", "joins", "where"), source)
    if node.args.get("joins") or node.args.get("from_") is None:
        what = "a subquery in a condition reads one stream"
        raise UnsupportedSql(what, where=source.where(node), hint="write SELECT 1 FROM stream WHERE ...")
    return node
