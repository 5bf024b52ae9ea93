"""Random join queries over given streams, in three dialects (see `random_expressions`).

Two to five relations, self-joins, derived tables, composite and computed keys, selections, residual
conditions, and time in every form: none, conditions between event times, WITHIN per relation or for
all, tumbling and hopping windows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tests.support.cases import QueryCase, StreamCase
from tests.support.generators.expressions import (
    INTEGER_KINDS,
    ExpressionMaker,
    ScopeColumn,
    SqlText,
    interval,
    join_sql,
    shifted_date,
    sql,
)
from tests.support.generators.thetas import ThetaMaker

ALIASES = ("a", "b", "c", "d", "e")
SECOND = 1_000_000
_SAME_NAME = re.compile(r"\w+\.(\w+) = \w+\.\1")


@dataclass(frozen=True)
class QueryLimits:
    """What a generator may use. `full_history` False asks for queries whose state is bounded.

    `distinct_streams` asks for three or more relations without self-joins. `aggregates` is the share of queries that
    ask for groups (see `random_aggregates`).
    """

    max_relations: int = 5
    full_history: bool = True
    hop_windows: bool = True
    within: bool = True
    selections: bool = True
    distinct_streams: bool = False
    theta_chance: float = 0.0
    aggregates: float = 0.0


DEFAULT_QUERY_LIMITS = QueryLimits()


@dataclass(frozen=True)
class Window:
    size_us: int
    slide_us: int
    offset_us: int

    def text(self, time_column: str) -> SqlText:
        arguments = [f"'{self.size_us // 1000} milliseconds'"]
        if self.slide_us != self.size_us or self.offset_us:
            arguments.append(f"'{self.slide_us // 1000} milliseconds'")
        if self.offset_us:
            arguments.append(f"'{self.offset_us // 1000} milliseconds'")
        spark = f"window({time_column}, {', '.join(arguments)})"
        duckdb = f"unnest(hop_windows({time_column}, {self.size_us}, {self.slide_us}, {self.offset_us}))"
        return SqlText(spark, spark, duckdb)


@dataclass(frozen=True)
class Relation:
    """One relation of the FROM clause: its text without alias, its alias and its columns."""

    source: SqlText
    alias: str
    columns: tuple[ScopeColumn, ...]
    within_us: int | None = None

    @property
    def event_time(self) -> SqlText | None:
        return next((column.text for column in self.columns if column.is_event_time), None)

    @property
    def window(self) -> SqlText | None:
        return next((column.text for column in self.columns if column.kind == "window"), None)


@dataclass(frozen=True)
class Asked:
    """What a query asks of its joined rows: the SELECT list, more of FROM after all joins, what follows WHERE."""

    items: SqlText
    more_from: SqlText = field(default_factory=lambda: sql(""))
    groups: SqlText = field(default_factory=lambda: sql(""))


class QueryMaker:
    """Makes one query; see `random_expressions` for `shape` and `constants`."""

    def __init__(
        self,
        streams: Sequence[StreamCase],
        domains: dict[tuple[str, str], str],
        shape: Random,
        constants: Random,
        limits: QueryLimits,
    ) -> None:
        self.streams = streams
        self.domains = domains
        self.shape = shape
        self.constants = constants
        self.limits = limits
        self.expressions = ExpressionMaker(shape, constants)
        self.thetas = ThetaMaker(shape, constants)

    def query(self, name: str) -> QueryCase:
        time_form = self.time_form()
        relations = self._relations(time_form)
        conditions = self._key_conditions(relations, time_form)
        within_all: int | None = None
        if time_form == "pairs":
            conditions += self._pair_bounds(relations)
        elif time_form == "within_all":
            within_all = self.constants.randint(0, 12) * SECOND // 2
        conditions += self._selections(relations) + self._residuals(relations)
        asked = self.asked(relations)
        # Where USING puts its column in a star is told differently by Spark and DuckDB.
        may_use_using = "*" not in asked.items.dovetail
        source, where = self._from_clause(relations, conditions, may_use_using)
        text = _assemble(asked, source, where)
        batch_text = _assemble(asked, source, [*where, *spelled_out_within(relations, within_all)])
        suffix = "" if within_all is None else f" WITHIN {duration_text(within_all)}"
        return QueryCase(name, text.dovetail + suffix, batch_text.spark, batch_text.duckdb)

    def time_form(self) -> str:
        forms = ["pairs"] * 4
        forms += ["none"] * 2 if self.limits.full_history else []
        forms += ["within_all", "within_all", "within_each", "within_each"] if self.limits.within else []
        forms += ["hop", "hop"] if self.limits.hop_windows else []
        return self.shape.choice(forms)

    def relation_count(self) -> int:
        return min(self.shape.choice([2] * 11 + [3] * 5 + [4] * 3 + [5] * 2), self.limits.max_relations)

    def asked(self, relations: tuple[Relation, ...]) -> Asked:
        return Asked(self.select_items(relations))

    # -- relations ---------------------------------------------------------------------------------

    def _relations(self, time_form: str) -> tuple[Relation, ...]:
        shape = self.shape
        count = self.relation_count()
        is_free = time_form == "none" or (time_form == "pairs" and self.limits.full_history)
        usable = [s for s in self.streams if s.event_time is not None or is_free]
        if not usable:
            raise ValueError("a generator needs a stream with an event time")
        chosen = [shape.choice(usable) for _ in range(count)]
        if self.limits.distinct_streams:
            chosen = shape.sample(usable, min(max(count, 3), len(usable)))
            chosen += chosen[:1] * (len(chosen) == 1)
        window = self.window() if time_form == "hop" else None
        relations = []
        for letter, stream in zip(ALIASES, chosen, strict=False):
            is_named_by_stream = chosen.count(stream) == 1 and shape.random() < 0.15
            if window is not None and shape.random() < 0.1:
                window = self.window()  # from here on: such windows are equal only by chance
            relation = self._relation(stream, stream.name if is_named_by_stream else letter, window)
            is_within = time_form == "within_each" and (not self.limits.full_history or shape.random() < 0.75)
            if is_within:
                relation = replace(relation, within_us=self.constants.randint(0, 12) * SECOND // 2)
            relations.append(relation)
        return tuple(relations)

    def window(self) -> Window:
        size = self.shape.choice([1, 2, 3, 4, 5])
        slide = self.shape.choice([size, size, max(1, size // 2), 1, max(1, size - 1)])
        offset = self.shape.choice([0, 0, 0, slide * SECOND // 2])
        return Window(size * SECOND, slide * SECOND, offset)

    def _relation(self, stream: StreamCase, alias: str, window: Window | None) -> Relation:
        inner = [
            ScopeColumn(sql(name), kind, self.domains.get((stream.name, name), ""), name == stream.event_time)
            for name, kind in stream.columns
        ]
        if window is None and self.shape.random() < 0.75:
            return Relation(sql(stream.name), alias, tuple(_qualified(alias, column) for column in inner))
        items = [sql("*")] if self.shape.random() < 0.2 else None
        outer = [_qualified(alias, column) for column in inner]
        if items is None:
            items, outer = self._derived_columns(alias, inner)
        if window is not None:
            if stream.event_time is None:
                raise ValueError("a window needs an event time")
            items = [*items, sql("{} AS w", window.text(stream.event_time))]
            outer.append(ScopeColumn(sql("{}.w", alias), "window"))
        has_where = self.limits.selections and self.shape.random() < 0.35
        where = sql(" WHERE {}", self.expressions.selection(inner)) if has_where else sql("")
        source = sql("(SELECT {} FROM {}{})", join_sql(", ", items), stream.name, where)
        return Relation(source, alias, tuple(outer))

    def _derived_columns(self, alias: str, inner: list[ScopeColumn]) -> tuple[list[SqlText], list[ScopeColumn]]:
        items: list[SqlText] = []
        outer: list[ScopeColumn] = []
        for column in inner:
            is_needed = bool(column.domain) or column.is_event_time
            if not is_needed and self.shape.random() < 0.3:
                continue
            name = column.text.dovetail
            if self.shape.random() < 0.25:
                items.append(sql("{} AS {}_x", name, name))
                name = f"{name}_x"
            else:
                items.append(sql(name))
            outer.append(replace(column, text=sql("{}.{}", alias, name)))
        for column in inner:
            if column.is_event_time and self.shape.random() < 0.2:
                items.append(sql("{} - {} AS shifted", column.text, interval(self.constants.randint(1, 3) * SECOND)))
                shifted = sql("{}.shifted", alias)
                outer.append(ScopeColumn(shifted, column.kind, is_shifted_time=True))
        for position in range(self.shape.randint(0, 2)):
            value, group = self.expressions.value(inner)
            kind = {"number": "computed"}.get(group, group)
            items.append(sql("{} AS x{}", value, position))
            if kind != "computed":  # its exact numeric type is open: keys and casts would differ by dialect
                outer.append(ScopeColumn(sql("{}.x{}", alias, position), kind))
        return items, outer

    # -- conditions --------------------------------------------------------------------------------

    def _key_conditions(self, relations: tuple[Relation, ...], time_form: str) -> list[SqlText]:
        shape = self.shape
        edges = [(shape.randrange(later), later) for later in range(1, len(relations))]
        if len(relations) > 2 and shape.random() < 0.3:
            edges.append((0, len(relations) - 1))
        conditions: list[SqlText] = []
        for earlier, later in edges:
            one, other = relations[earlier], relations[later]
            if shape.random() < 0.5:
                one, other = other, one
            conditions += self._edge(relations, one, other)
            if time_form == "hop" and one.window and other.window and shape.random() < 0.95:
                part = shape.choice(["{} = {}"] * 8 + ["{}.start = {}.start", "{0}.start = {1}.start AND {1} = {0}"])
                conditions.append(sql(part, one.window, other.window))
        return conditions

    def _edge(self, relations: tuple[Relation, ...], one: Relation, other: Relation) -> list[SqlText]:
        if not self.limits.theta_chance or self.shape.random() >= self.limits.theta_chance:
            return self._edge_keys(one, other)
        draw = self.shape.random()
        if draw < 0.1 and one.event_time and other.event_time:
            return [self._time_bound(self._time_of(one), self._time_of(other))]
        condition = self.thetas.condition(one.columns, other.columns)
        earlier = relations[: max(relations.index(one), relations.index(other))]
        thirds = [relation for relation in earlier if relation not in (one, other)]
        if draw < 0.25 and thirds:
            third = self.shape.choice(thirds)
            condition = self.thetas.over_three(one.columns, third.columns, other.columns) or condition
        if condition is None:
            return self._edge_keys(one, other)
        return [condition, *(self._edge_keys(one, other) if draw > 0.65 else [])]

    def _edge_keys(self, one: Relation, other: Relation) -> list[SqlText]:
        pairs = [(x, y) for x in one.columns for y in other.columns if x.domain and x.domain == y.domain]
        count = 2 if len(pairs) > 1 and self.shape.random() < 0.3 else 1
        chosen = self.shape.sample(pairs, count)
        return [self._key(x, y) for x, y in chosen]

    def _key(self, x: ScopeColumn, y: ScopeColumn) -> SqlText:
        forms = [sql("{} = {}", x.text, y.text)]
        step = self.constants.randint(1, 2)
        if x.kind in INTEGER_KINDS and y.kind in INTEGER_KINDS:
            forms += [
                sql("{} + {} = {}", x.text, step, y.text),
                sql("{} % 3 = {} % 3", x.text, y.text),
                sql("abs({}) = abs({})", x.text, y.text),
                sql("coalesce({}, 0) = coalesce({}, 0)", x.text, y.text),
                sql("CASE WHEN {} > 1 THEN {} ELSE 0 END = {}", x.text, x.text, y.text),
            ]
        elif x.kind == "string":
            forms += [
                sql("upper({}) = upper({})", x.text, y.text),
                sql("substring({}, 1, 1) = substring({}, 1, 1)", x.text, y.text),
                sql("coalesce({}, '') = {}", x.text, y.text),
            ]
        elif x.kind == "date":
            forms += [sql("{} = {}", shifted_date(x.text, step), y.text), sql("day({}) = day({})", x.text, y.text)]
        elif x.kind == "timestamp":
            forms += [sql("{} = {} + {}", x.text, y.text, interval(step * SECOND))]
        return self.shape.choice(forms) if self.shape.random() < 0.25 else forms[0]

    def _pair_bounds(self, relations: tuple[Relation, ...]) -> list[SqlText]:
        bounds: list[SqlText] = []
        for later in range(1, len(relations)):
            one, other = relations[self.shape.randrange(later)], relations[later]
            if self.shape.random() < 0.5:
                one, other = other, one
            if one.event_time and other.event_time and (not self.limits.full_history or self.shape.random() < 0.9):
                bounds.append(self._time_bound(self._time_of(one), self._time_of(other)))
        return bounds

    def _time_of(self, relation: Relation) -> SqlText:
        """The event time, or the column of a derived table that holds it shifted."""
        return self.shape.choice([c.text for c in relation.columns if c.is_event_time or c.is_shifted_time])

    def _time_bound(self, x: SqlText, y: SqlText) -> SqlText:
        near = interval(self.constants.randint(0, 6) * SECOND // 2)
        far = interval(self.constants.randint(7, 14) * SECOND // 2)
        two_sided = [
            sql("{} BETWEEN {} - {} AND {} + {}", y, x, near, x, far),
            sql("{} BETWEEN {} - {} AND {} + {}", y, x, near, x, near),
            sql("{} BETWEEN {} AND {} + {}", y, x, x, far),
            sql("{} BETWEEN {} + {} AND {} + {}", y, x, near, x, far),
            sql("{} >= {} AND {} <= {} + {}", y, x, y, x, far),
            sql("{} > {} AND {} < {} + {}", y, x, y, x, far),
            sql("{} <= {} + {} AND {} <= {} + {}", x, y, near, y, x, far),
            sql("{} - {} <= {} AND {} - {} < {}", y, x, far, x, y, near),
            sql("{} - {} <= {} AND {} >= {} - {}", x, far, y, x, y, near),
            sql("{} = {}", x, y),
            sql("{} BETWEEN {} - {} AND {}", x, y, far, y),
        ]
        one_sided = [
            sql("{} <= {} + {}", y, x, near),
            sql("{} < {}", x, y),
            sql("{} >= {} - {}", x, y, far),
            sql("{} > {} + {}", y, x, near),
        ]
        if self.limits.full_history and self.shape.random() < 0.15:
            return self.shape.choice(one_sided)
        return self.shape.choice(two_sided)

    def _selections(self, relations: tuple[Relation, ...]) -> list[SqlText]:
        if not self.limits.selections:
            return []
        chance = 0.3 if len(relations) < 4 else 0.15
        return [self.expressions.predicate(r.columns) for r in relations if self.shape.random() < chance]

    def _residuals(self, relations: tuple[Relation, ...]) -> list[SqlText]:
        if self.shape.random() > 0.22 or len(relations) == 1:
            return []
        involved = self.shape.sample(relations, min(len(relations), self.shape.choice([2, 2, 3])))
        first, group = self.expressions.value(involved[0].columns)
        rest = [c for relation in involved[1:] for c in relation.columns]
        second = self.expressions.of_group(rest, group)
        operator = self.shape.choice(["<", "<=", ">", ">=", "<>"]) if group != "boolean" else "="
        residual = sql("{} {} {}", first, operator, second)
        if self.shape.random() < 0.3:
            columns = [c for relation in involved for c in relation.columns]
            residual = sql("({} OR {})", residual, self.expressions.predicate(columns, 0))
        return [residual]

    # -- text --------------------------------------------------------------------------------------

    def select_items(self, relations: tuple[Relation, ...]) -> SqlText:
        shape = self.shape
        columns = [column for relation in relations for column in relation.columns]
        # A whole window over times without zone is refused in the output; its ends are not.
        is_free = not any(c.kind == "window" for c in columns) or not any(c.kind == "timestamp_ntz" for c in columns)
        if is_free and shape.random() < 0.12:
            return sql("*")
        items: list[SqlText] = []
        for position in range(shape.randint(1, 4)):
            draw = shape.random()
            if is_free and draw < 0.1:
                items.append(sql("{}.*", shape.choice(relations).alias))
            elif draw < 0.65:
                column = shape.choice(columns)
                items.append(self.window_part(column.text, is_free) if column.kind == "window" else column.text)
            else:
                items.append(sql("{} AS o{}", self.expressions.value(columns)[0], position))
        return join_sql(", ", items)

    def window_part(self, window: SqlText, may_be_whole: bool) -> SqlText:
        start, end = sql("{}.start", window), sql("{}.end", window)
        whole = window if may_be_whole else start
        return self.shape.choice([whole, start, replace(end, duckdb=f'{window.duckdb}."end"')])

    def _from_clause(
        self, relations: tuple[Relation, ...], conditions: list[SqlText], may_use_using: bool
    ) -> tuple[SqlText, list[SqlText]]:
        """The FROM clause, and the conditions that it leaves to WHERE."""
        shape = self.shape
        shape.shuffle(conditions)
        texts = [self._relation_text(relation) for relation in relations]
        if shape.random() < 0.25:
            return join_sql(", ", texts), conditions
        shared = [match[1] for c in conditions if (match := _SAME_NAME.fullmatch(c.dovetail))]
        if len(relations) == 2 and shared and may_use_using and shape.random() < 0.2:
            clause = sql("{} JOIN {} USING ({})", texts[0], texts[1], shared[0])
            return clause, [
                c for c in conditions if (m := _SAME_NAME.fullmatch(c.dovetail)) is None or m[1] != shared[0]
            ]
        known = {relations[0].alias}
        clause = texts[0]
        left = list(conditions)
        for relation, text in zip(relations[1:], texts[1:], strict=True):
            known.add(relation.alias)
            possible = [c for c in left if relation.alias in _aliases_in(c, relations) <= known]
            here = [c for c in possible if shape.random() < 0.8] or possible[:1]
            left = [c for c in left if not any(c is used for used in here)]
            keyword = shape.choice(["JOIN", "JOIN", "INNER JOIN"])
            clause = sql("{} {} {} ON {}", clause, keyword, text, join_sql(" AND ", here))
        return clause, left

    def _relation_text(self, relation: Relation) -> SqlText:
        if relation.source.dovetail == relation.alias:
            text = relation.source
        else:
            text = sql(self.shape.choice(["{} AS {}", "{} {}"]), relation.source, relation.alias)
        if relation.within_us is None:
            return text
        return replace(text, dovetail=f"{text.dovetail} WITHIN {duration_text(relation.within_us)}")


def _qualified(alias: str, column: ScopeColumn) -> ScopeColumn:
    return replace(column, text=sql("{}.{}", alias, column.text))


def _assemble(asked: Asked, source: SqlText, where: Sequence[SqlText]) -> SqlText:
    text = sql("SELECT {} FROM {}{}", asked.items, source, asked.more_from)
    text = sql("{} WHERE {}", text, join_sql(" AND ", where)) if where else text
    return sql("{}{}", text, asked.groups)


def _aliases_in(condition: SqlText, relations: tuple[Relation, ...]) -> set[str]:
    return {r.alias for r in relations if re.search(rf"\b{r.alias}\.", condition.dovetail)}


def duration_text(micros: int) -> str:
    return f"{micros // SECOND} SECONDS" if micros % SECOND == 0 else f"{micros // 1000} MILLISECONDS"


def spelled_out_within(relations: tuple[Relation, ...], within_all: int | None) -> list[SqlText]:
    """WITHIN as conditions: no other member is later than a relation's row by more than its window."""
    conditions: list[SqlText] = []
    for one in relations:
        limit = one.within_us if within_all is None else within_all
        if limit is None:
            continue
        conditions += [
            sql("{} <= {} + {}", other.event_time, one.event_time, interval(limit))
            for other in relations
            if other is not one and one.event_time and other.event_time
        ]
    return conditions
