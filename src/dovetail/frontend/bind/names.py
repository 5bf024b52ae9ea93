"""FROM clauses to relations: which stream each alias reads, which columns it shows, in which order.

A derived table is merged into its relation: each column it shows is an expression over the stream's
own columns, its WHERE becomes the relation's selection, and its `window()` the relation's hop window.
So the rest of the front end knows one kind of relation only.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dovetail.core.errors import SqlError, UnknownName, UnsupportedSql
from dovetail.frontend.parse.source_text import SourceText
from dovetail.query.expression import TRUE, Call, Column, Expression
from dovetail.query.join_query import HopWindow
from dovetail.query.stream import Stream
from dovetail.query.types import COLLATED, COLLATED_HINT, WINDOW

_WINDOW_FIELDS = {"start": 0, "end": 1}


@dataclass(frozen=True)
class VisibleColumn:
    """A name that a relation shows, and what it stands for."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class BoundRelation:
    """One alias of a FROM clause. `selection` and the columns speak of this alias only."""

    alias: str
    stream: Stream
    columns: tuple[VisibleColumn, ...]
    selection: Expression = TRUE
    hop_window: HopWindow | None = None
    within_us: int | None = None

    def find(self, name: str) -> list[VisibleColumn]:
        return [column for column in self.columns if column.name.lower() == name.lower()]


@dataclass(frozen=True)
class Scope:
    """The relations that an expression may speak of, in FROM order.

    `shown` is what `*` gives and what names without a relation find: all columns of all relations,
    except that JOIN USING shows its columns once and first.
    """

    relations: tuple[BoundRelation, ...]
    source: SourceText
    shown: tuple[VisibleColumn, ...] = ()

    def with_relation(self, relation: BoundRelation, where: str) -> Scope:
        if any(other.alias.lower() == relation.alias.lower() for other in self.relations):
            hint = f"give each its own alias, for example {relation.alias} AS {relation.alias}_2"
            raise SqlError(f"two relations are called {relation.alias!r}", where=where, hint=hint)
        return replace(self, relations=(*self.relations, relation), shown=(*self.shown, *relation.columns))

    def with_relation_using(self, relation: BoundRelation, names: Sequence[str], where: str) -> Scope:
        """The scope after `JOIN relation USING (names)`: of each pair the left column is shown.

        The columns of USING come first, also in `a.*` and `b.*`.
        """
        merged = tuple(self.shown_as(name)[0] for name in names)
        rest = (*self.shown, *relation.columns)
        hidden = {name.lower() for name in names}
        kept = tuple(column for column in rest if column.name.lower() not in hidden)
        joined = self.with_relation(relation, where)
        first = [*merged, *(column for name in names for column in relation.find(name))]
        relations = tuple(_with_first(each, first) for each in joined.relations)
        return replace(joined, relations=relations, shown=(*merged, *kept))

    def shown_as(self, name: str) -> list[VisibleColumn]:
        return [column for column in self.shown if column.name.lower() == name.lower()]

    def resolve(self, node: exp.Column) -> Expression:
        """The expression behind a column reference: `x`, `r.x`, `w.start` or `r.w.start`."""
        parts = [part.name for part in node.parts]
        found = self._candidates(parts)
        where = self.source.where(node)
        written = ".".join(parts)
        if any(expression.type == COLLATED for expression in found):
            what = f"column {written!r} is text with a collation or of type CHAR, which no query can use"
            raise UnsupportedSql(what, where=where, hint=COLLATED_HINT)
        if len(found) == 1:
            return found[0]
        if len(found) > 1:
            owners = sorted({relation.alias for relation in self.relations if relation.find(parts[-1])})
            hint = "write " + " or ".join(f"{owner}.{parts[-1]}" for owner in owners)
            raise UnknownName(f"column {written!r} is ambiguous", where=where, hint=hint)
        raise self._unknown(parts, written, where)

    def _candidates(self, parts: list[str]) -> list[Expression]:
        found: list[Expression] = []
        if len(parts) == 1:
            found = self._unqualified(parts[0])
        elif len(parts) == 2:
            found = [column.expression for relation in self._named(parts[0]) for column in relation.find(parts[1])]
            found = found or _fields(self._unqualified(parts[0]), parts[1])
        elif len(parts) == 3:
            columns = [column.expression for relation in self._named(parts[0]) for column in relation.find(parts[1])]
            found = _fields(columns, parts[2])
        return found

    def _unqualified(self, name: str) -> list[Expression]:
        return [column.expression for column in self.shown_as(name)]

    def _named(self, alias: str) -> list[BoundRelation]:
        return [relation for relation in self.relations if relation.alias.lower() == alias.lower()]

    def _unknown(self, parts: list[str], written: str, where: str) -> UnknownName:
        if len(parts) > 1 and not self._named(parts[0]) and not self._unqualified(parts[0]):
            aliases = [relation.alias for relation in self.relations]
            what = f"unknown relation {parts[0]!r} in {written!r}"
            return UnknownName(what, where=where, hint=close_matches(parts[0], aliases))
        relations = self._named(parts[0]) if len(parts) > 1 else list(self.relations)
        names = [column.name for relation in relations for column in relation.columns]
        return UnknownName(f"unknown column {written!r}", where=where, hint=close_matches(parts[-1], names))

    def star(self, alias: str | None, where: str) -> tuple[VisibleColumn, ...]:
        """The columns of `*` or `alias.*`."""
        if alias is not None:
            named = self._named(alias)
            if not named:
                aliases = [relation.alias for relation in self.relations]
                raise UnknownName(f"unknown relation {alias!r}", where=where, hint=close_matches(alias, aliases))
            return named[0].columns
        return self.shown


def _with_first(relation: BoundRelation, first: Sequence[VisibleColumn]) -> BoundRelation:
    """The relation with those of its columns before the others."""
    own = {id(column) for column in relation.columns}
    moved = [column for column in first if id(column) in own]
    rest = [column for column in relation.columns if not any(column is each for each in moved)]
    return replace(relation, columns=(*moved, *rest))


def _fields(structs: list[Expression], field: str) -> list[Expression]:
    position = _WINDOW_FIELDS.get(field.lower())
    if position is None:
        return []
    return [struct.args[position] for struct in structs if isinstance(struct, Call) and struct.type == WINDOW]


def close_matches(name: str, candidates: Iterable[str]) -> str:
    """«did you mean ...», or the list of what there is."""
    known = sorted(set(candidates))
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = [by_lower[match] for match in difflib.get_close_matches(name.lower(), by_lower, n=3)]
    if close:
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(known[:20]) or "none"
    return f"there is: {shown}{', ...' if len(known) > 20 else ''}"


def scope_of(relation: BoundRelation, source: SourceText) -> Scope:
    return Scope((relation,), source, relation.columns)


def scope_in_subquery(outer: Scope, relation: BoundRelation, where: str) -> Scope:
    """What a subquery over `relation` may speak of: names without a relation find its own columns first."""
    own = {column.name.lower() for column in relation.columns}
    others = tuple(column for column in outer.shown if column.name.lower() not in own)
    return replace(outer.with_relation(relation, where), shown=(*relation.columns, *others))


def find_stream(node: exp.Table, streams: Mapping[str, Stream], source: SourceText) -> Stream:
    name = node.name
    matches = [stream for key, stream in streams.items() if key.lower() == name.lower()]
    if len(matches) != 1:
        raise UnknownName(f"unknown stream {name!r}", where=source.where(node), hint=close_matches(name, streams))
    return matches[0]


def relation_of_stream(stream: Stream, alias: str) -> BoundRelation:
    columns = tuple(VisibleColumn(name, Column(alias, name, sql_type)) for name, sql_type in stream.columns)
    return BoundRelation(alias, stream, columns)


def alias_of(node: exp.Expr, fallback: str | None, source: SourceText) -> str:
    """The alias of a table or derived table; column lists after it are refused."""
    table_alias = node.args.get("alias")
    if isinstance(table_alias, exp.TableAlias):
        if table_alias.args.get("columns"):
            raise UnsupportedSql(
                "a column list after an alias is not supported",
                where=source.where(table_alias),
                hint="name the columns with AS inside a derived table",
            )
        if table_alias.name:
            return table_alias.name
    if fallback is None:
        raise UnsupportedSql(
            "a derived table needs an alias", where=source.where(node), hint="write (SELECT ...) AS name"
        )
    return fallback
