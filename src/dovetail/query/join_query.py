"""One continuous query, bound and typed: relations, selections, predicates, time bounds, output.

Everything is keyed by relation alias. A joined row has one row per relation such that
  - each row passes its relation's `selection`,
  - every `Equality` holds (NULL equals nothing),
  - every `TimeBound` holds,
  - every residual predicate is true.
Joined rows are the answer, or the groups that an `Aggregation` makes of them.

A join of two relations may be of another `JoinKind`. Then these conditions say which rows are partners: a residual may
speak of one relation or of none, and rows that fail it have no partner. A relation's `selection` says which of its rows
are there at all, and `where` which pairs and padded rows are answered.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from dovetail.core.errors import CrossProduct, QueryError
from dovetail.query.aggregation import GROUP, Aggregation
from dovetail.query.durations import check_window
from dovetail.query.expression import TRUE, Expression, columns_of, relations_of
from dovetail.query.join_kind import JoinKind
from dovetail.query.types import SqlType

MAX_RELATIONS = 5
WINDOW_START = "window.start"
WINDOW_END = "window.end"
PRESENT = "#present"
"""A column that every relation has: true, and NULL where an outer join pads. No SQL text can name it."""


@dataclass(frozen=True)
class HopWindow:
    """Spark's `window(time_column, size, slide, offset)`: a row belongs to size/slide windows (rounded up).

    A relation with a hop window has one row per (stream row, window) and two more columns,
    `window.start` and `window.end`. Tumbling: slide equals size.
    """

    time_column: str
    size_us: int
    slide_us: int
    offset_us: int = 0

    def __post_init__(self) -> None:
        check_window(self.size_us, self.slide_us, self.offset_us)

    def __str__(self) -> str:
        return f"window({self.time_column}, {self.size_us}us, {self.slide_us}us, {self.offset_us}us)"


@dataclass(frozen=True)
class Relation:
    """One use of a stream in a query. `selection` speaks of this relation only."""

    alias: str
    stream: str
    selection: Expression = TRUE
    hop_window: HopWindow | None = None

    def __post_init__(self) -> None:
        others = relations_of(self.selection) - {self.alias}
        if others:
            raise QueryError(f"the selection of {self.alias} speaks of {', '.join(sorted(others))}")


@dataclass(frozen=True)
class Equality:
    """`a_side = b_side`, each an expression over one relation, of the same type after coercion."""

    a_side: Expression
    b_side: Expression

    def __post_init__(self) -> None:
        if len(relations_of(self.a_side)) != 1 or len(relations_of(self.b_side)) != 1:
            raise QueryError("each side of a join equality speaks of one relation")
        if relations_of(self.a_side) == relations_of(self.b_side):
            raise QueryError("a join equality connects two relations")
        if self.a_side.type != self.b_side.type:
            raise QueryError(f"a join equality of {self.a_side.type} and {self.b_side.type}: cast one side")

    @cached_property
    def aliases(self) -> frozenset[str]:
        return frozenset(self._side_by_alias)

    def side_of(self, alias: str) -> Expression:
        return self._side_by_alias[alias]

    @cached_property
    def _side_by_alias(self) -> dict[str, Expression]:
        return {alias: side for side in (self.a_side, self.b_side) for alias in relations_of(side)}


@dataclass(frozen=True)
class TimeBound:
    """`later.event_time - earlier.event_time <= upper_us` (negative bounds are allowed).

    One-sided on purpose: `BETWEEN` gives two of them, and the closure of such bounds over a query
    (shortest paths) says how long each row can still find partners. A NULL event time satisfies none.
    """

    earlier: str
    later: str
    upper_us: int

    def __str__(self) -> str:
        return f"{self.later}.time - {self.earlier}.time <= {self.upper_us}us"


@dataclass(frozen=True)
class OutputColumn:
    """A column of the answer. Names may repeat, as in Spark's `SELECT *`."""

    name: str
    expression: Expression

    @property
    def type(self) -> SqlType:
        return self.expression.type


@dataclass(frozen=True)
class JoinQuery:
    """See the module's head. `sql` is the text it came from, for people.

    With an aggregation `output` speaks of groups (relation `GROUP`), otherwise of the relations.
    """

    sql: str
    relations: tuple[Relation, ...]
    equalities: tuple[Equality, ...]
    output: tuple[OutputColumn, ...]
    time_bounds: tuple[TimeBound, ...] = ()
    residuals: tuple[Expression, ...] = field(default=())
    aggregation: Aggregation | None = None
    kind: JoinKind = JoinKind.INNER
    where: Expression = TRUE

    def __post_init__(self) -> None:
        aliases = [relation.alias for relation in self.relations]
        if len(set(aliases)) != len(aliases):
            raise QueryError("two relations of one alias")
        if not 1 <= len(aliases) <= MAX_RELATIONS:
            raise QueryError(f"a query joins up to {MAX_RELATIONS} relations, not {len(aliases)}")
        if not self.output:
            raise QueryError("a query needs an output column", hint="write at least one after SELECT")
        used = {bound.earlier for bound in self.time_bounds} | {bound.later for bound in self.time_bounds}
        for expression in (*self.residuals, self.where, *self.joined_expressions):
            used |= relations_of(expression)
        if self.aggregation is not None and any(relations_of(column.expression) - {GROUP} for column in self.output):
            raise QueryError("the output of an aggregation speaks of groups")
        for equality in self.equalities:
            used |= equality.aliases
        if used - set(aliases):
            raise QueryError(f"unknown relations: {', '.join(sorted(used - set(aliases)))}")
        unreached = set(aliases) - self._reached_from(aliases[0])
        if unreached:
            raise CrossProduct(
                f"no condition connects {', '.join(sorted(unreached))} with {aliases[0]}",
                hint=f"add a condition such as {aliases[0]}.key = {min(unreached)}.key, "
                f"{aliases[0]}.value < {min(unreached)}.value or a bound of their event times",
            )
        if self.kind is not JoinKind.INNER:
            self._check_kind()
        elif self.where != TRUE:
            raise QueryError("an inner join needs no condition besides those of its pairs")

    def _check_kind(self) -> None:
        if len(self.relations) != 2:
            raise QueryError(f"a {self.kind.value} join has two relations")
        left, right = (relation.alias for relation in self.relations)
        answered = {alias for expression in self.joined_expressions for alias in relations_of(expression)}
        if not self.kind.answers_pairs and (right in answered or self.where != TRUE):
            raise QueryError(f"a {self.kind.value} join answers rows of {left} only")
        for alias in self.lone_aliases:
            other = self.partner_of(alias)
            if self.upper_us(alias, other) is None:
                raise QueryError(f"nothing says how much later than a row of {alias} its partner in {other} may be")

    @property
    def lone_aliases(self) -> tuple[str, ...]:
        """The relations whose rows are answered if they have no partner."""
        return tuple(self.relations[place].alias for place in self.kind.lone_places)

    @property
    def padded_aliases(self) -> tuple[str, ...]:
        """The relations whose columns are NULL in some answers because a row has no partner there."""
        return tuple(map(self.partner_of, self.lone_aliases)) if self.kind.answers_pairs else ()

    def partner_of(self, alias: str) -> str:
        """The other relation of a join of two."""
        (other,) = (relation.alias for relation in self.relations if relation.alias != alias)
        return other

    def upper_us(self, earlier: str, later: str) -> int | None:
        """How much later than a row of one relation of a join of two its partner may be; None if that is open."""
        uppers = [bound.upper_us for bound in self.time_bounds if (bound.earlier, bound.later) == (earlier, later)]
        return min(uppers, default=None)

    @property
    def joined_expressions(self) -> tuple[Expression, ...]:
        """What is evaluated on joined rows and handed on: to the user, or to groups."""
        if self.aggregation is not None:
            return self.aggregation.joined_expressions
        return tuple(column.expression for column in self.output)

    @property
    def is_updating(self) -> bool:
        """Whether answers are taken back: groups without a window change as long as rows come.

        A group that is only there or not (SELECT DISTINCT) never goes, so it is answered once and stays true.
        """
        groups = self.aggregation
        return groups is not None and not groups.is_windowed and (bool(groups.aggregates) or groups.having != TRUE)

    def relation(self, alias: str) -> Relation:
        return next(relation for relation in self.relations if relation.alias == alias)

    def means_the_same(self, other: JoinQuery) -> bool:
        """Whether both answer alike for ever, however their texts are written."""
        return replace(self, sql=other.sql) == other

    def read_columns(self) -> dict[str, set[str]]:
        """By stream, the columns that some expression speaks of. Time bounds name none: event times are always read."""
        expressions = [*self.residuals, self.where, *self.joined_expressions]
        expressions += [side for equality in self.equalities for side in (equality.a_side, equality.b_side)]
        expressions += [relation.selection for relation in self.relations]
        names = {(column.relation, column.name) for expression in expressions for column in columns_of(expression)}
        found: dict[str, set[str]] = {relation.stream: set() for relation in self.relations}
        for relation in self.relations:
            of_relation = {name for alias, name in names if alias == relation.alias} - {PRESENT}
            if relation.hop_window is not None:
                of_relation = of_relation - {WINDOW_START, WINDOW_END} | {relation.hop_window.time_column}
            found[relation.stream] |= of_relation
        return found

    @cached_property
    def connections(self) -> tuple[frozenset[str], ...]:
        """The sets of relations that some condition compares: equalities first, then time bounds, then residuals."""
        bounds = (frozenset({bound.earlier, bound.later}) for bound in self.time_bounds)
        residuals = (relations_of(residual) for residual in self.residuals if len(relations_of(residual)) > 1)
        return tuple(dict.fromkeys((*(equality.aliases for equality in self.equalities), *bounds, *residuals)))

    def _reached_from(self, alias: str) -> set[str]:
        reached = {alias}
        grew = True
        while grew:
            grew = False
            for aliases in self.connections:
                if aliases & reached and not aliases <= reached:
                    reached |= aliases
                    grew = True
        return reached
