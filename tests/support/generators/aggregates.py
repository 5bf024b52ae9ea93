"""Random queries for groups, in three dialects: aggregates, DISTINCT, HAVING, windows, over one to three relations.

Over one relation some ask for its rows: what no join query does.

What the dialects answer differently stays out: sums that overflow, averages of computed decimals (their digits are
another type in each), quotients of decimals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dovetail.core.errors import UnsupportedSql
from dovetail.frontend.compile_sql import compile_sql
from tests.support.cases import CLOSED_UNTIL, QueryCase
from tests.support.generators.expressions import INTEGER_KINDS, NUMERIC_KINDS, ScopeColumn, SqlText, join_sql, sql
from tests.support.generators.queries import Asked, QueryMaker, Relation

_EXACT_KINDS = ("smallint", "int", "decimal")
_NOTHING = sql("")
_COLUMN = re.compile(r"\b[a-z]\w*\.[a-z]")


@dataclass(frozen=True)
class GroupWindowText:
    """The window of a query's groups: how it is grouped by, its parts, and what FROM needs for it."""

    key: SqlText
    start: SqlText
    end: SqlText
    more_from: SqlText = _NOTHING


class AggregateMaker(QueryMaker):
    """Makes one query that asks for groups."""

    may_window = True

    def query(self, name: str) -> QueryCase:
        shape_state, constants_state = self.shape.getstate(), self.constants.getstate()
        made = super().query(name)
        try:
            compile_sql(made.sql, {stream.name: stream.stream for stream in self.streams})
        except UnsupportedSql as error:
            if "never closes" not in error.what:
                raise
            # The same query without a window: nothing in it says when one would close.
            self.shape.setstate(shape_state)
            self.constants.setstate(constants_state)
            self.may_window = False
            made = super().query(name)
        return made

    def time_form(self) -> str:
        form = super().time_form()
        self._relations_wanted = min(self.shape.choice([1, 1, 2, 2, 2, 3]), self.limits.max_relations)
        return form if self._relations_wanted > 1 or form == "hop" else "none"

    def relation_count(self) -> int:
        return self._relations_wanted

    def asked(self, relations: tuple[Relation, ...]) -> Asked:
        if len(relations) == 1 and self.shape.random() < 0.2:
            return super().asked(relations)
        columns = [column for relation in relations for column in relation.columns]
        plain = [column for column in columns if column.kind != "window"]
        if self.shape.random() < 0.15:
            keys = [self._group_key(plain) for _ in range(self.shape.randint(1, 3))]
            items = [sql("{} AS o{}", key, position) for position, key in enumerate(keys)]
            return Asked(sql("DISTINCT {}", join_sql(", ", items)))
        window = self._group_window(relations)
        keys = [self._group_key(plain) for _ in range(self.shape.choice([0, 1, 1, 1, 2]))]
        items = self._items(plain, keys, window)
        groups = self._group_by(keys, window, items)
        groups = sql("{}{}", groups, self._having(plain, keys, window))
        return Asked(join_sql(", ", items), window.more_from if window else _NOTHING, groups)

    def _group_key(self, columns: Sequence[ScopeColumn]) -> SqlText:
        column, computed = self.shape.choice(list(columns)).text, self.expressions.value(columns)[0]
        # Constants are refused in GROUP BY.
        is_computed = self.shape.random() < 0.25 and _COLUMN.search(computed.dovetail)
        return computed if is_computed else column

    def _group_window(self, relations: tuple[Relation, ...]) -> GroupWindowText | None:
        shape = self.shape
        derived = [relation.window for relation in relations if relation.window is not None]
        timed = [relation.event_time for relation in relations if relation.event_time is not None]
        draw, window = shape.random(), self.window()
        chosen_derived, chosen_timed = (shape.choice(texts) if texts else None for texts in (derived, timed))
        if not self.may_window or draw < 0.35:
            return None
        if chosen_derived is not None and draw < 0.85:
            start = sql("{}.start", chosen_derived)
            end = replace(sql("{}.end", chosen_derived), duckdb=f'{chosen_derived.duckdb}."end"')
            return GroupWindowText(shape.choice([chosen_derived, chosen_derived, start]), start, end)
        if chosen_timed is None:
            return None
        call = window.text(chosen_timed.dovetail)
        moments = call.duckdb.removeprefix("unnest(").removesuffix(")")
        return GroupWindowText(
            replace(call, duckdb="grouped.w"),
            SqlText("window.start", "window.start", "grouped.w.start"),
            SqlText("window.end", "window.end", 'grouped.w."end"'),
            SqlText("", "", f", unnest({moments}) AS grouped(w)"),
        )

    def _items(
        self, columns: Sequence[ScopeColumn], keys: Sequence[SqlText], window: GroupWindowText | None
    ) -> list[SqlText]:
        shape = self.shape
        items: list[SqlText] = []
        for key in keys:
            if shape.random() < 0.85:
                items.append(sql("{} AS o{}", key, len(items)))
        if window is not None:
            is_whole = window.key.dovetail != window.start.dovetail
            parts = [window.start] + [window.end] * (is_whole and shape.random() < 0.3)
            items += [sql("{} AS o{}", part, len(items) + position) for position, part in enumerate(parts)]
        for _ in range(shape.randint(0 if items else 1, 3)):
            items.append(sql("{} AS o{}", self._over_groups(columns), len(items)))
        return items

    def _group_by(self, keys: Sequence[SqlText], window: GroupWindowText | None, items: Sequence[SqlText]) -> SqlText:
        written: list[SqlText] = []
        for key in keys:
            position = next((at for at, item in enumerate(items) if item == sql("{} AS o{}", key, at)), None)
            forms = [key] * 3 + ([sql("{}", position + 1), sql("o{}", position)] if position is not None else [])
            written.append(self.shape.choice(forms))
        written += [window.key] if window is not None else []
        self.shape.shuffle(written)
        return sql(" GROUP BY {}", join_sql(", ", written)) if written else _NOTHING

    def _having(
        self, columns: Sequence[ScopeColumn], keys: Sequence[SqlText], window: GroupWindowText | None
    ) -> SqlText:
        shape = self.shape
        forms: list[Callable[[], SqlText]] = [
            lambda: sql("COUNT(*) {} {}", shape.choice([">", "<", ">="]), self.constants.randint(0, 4)),
            lambda: sql("{} IS NOT NULL", self.aggregate(columns)),
            lambda: sql(
                "MAX({}) {} {}", self._number(columns), shape.choice(["<", ">="]), self.constants.randint(0, 3)
            ),
        ]
        forms += [lambda: sql("{} IS NOT NULL", shape.choice(list(keys)))] if keys else []
        conditions = [shape.choice(forms)() for _ in range(shape.choice([0, 0, 1, 1, 2]))]
        text = join_sql(shape.choice([" AND ", " OR "]), conditions) if conditions else _NOTHING
        if window is None:
            return sql(" HAVING {}", text) if conditions else _NOTHING
        closed = sql(f"MAX({{}}) <= {CLOSED_UNTIL}", window.end)
        batch_text = sql(" HAVING ({}) AND {}", text, closed) if conditions else sql(" HAVING {}", closed)
        return replace(batch_text, dovetail=f" HAVING {text.dovetail}" if conditions else "")

    def _over_groups(self, columns: Sequence[ScopeColumn]) -> SqlText:
        """An aggregate, or a small expression over aggregates."""
        whole = [column for column in columns if column.kind in INTEGER_KINDS and column.domain != "big"]
        forms: list[Callable[[], SqlText]] = [lambda: self.aggregate(columns)] * 6
        forms += [
            lambda: sql("COUNT(*) * {} + {}", self.constants.randint(1, 3), self._count(columns)),
            lambda: sql("CASE WHEN COUNT(*) > {} THEN {} END", self.constants.randint(0, 3), self.aggregate(columns)),
            lambda: sql("coalesce(SUM({}), 0)", self._number(columns)),
        ]
        if whole:
            column = self.shape.choice(whole)
            forms += [lambda: sql("SUM({}) / COUNT({})", column.text, column.text)]
        return self.shape.choice(forms)()

    def aggregate(self, columns: Sequence[ScopeColumn]) -> SqlText:
        shape = self.shape
        averaged = [c.text for c in columns if c.kind in ("smallint", "int", "float", "double") and c.domain != "big"]
        decimals = [c.text for c in columns if c.kind == "decimal"]
        any_column = shape.choice(list(columns)).text
        forms: list[Callable[[], SqlText]] = [
            lambda: sql("COUNT(*)"),
            lambda: self._count(columns),
            lambda: sql("SUM({})", self._number(columns)),
            lambda: sql("SUM({})", self._number(columns)),
            lambda: sql("{}({})", shape.choice(["MIN", "MAX"]), any_column),
            lambda: sql("{}({})", shape.choice(["MIN", "MAX"]), self.expressions.value(columns)[0]),
            lambda: sql("COUNT(DISTINCT {})", any_column),
            lambda: self._count_distinct(columns),
        ]
        if averaged:
            forms += [lambda: sql("AVG({})", shape.choice(averaged))]
        if decimals:
            average = sql("AVG({})", shape.choice(decimals))
            forms += [lambda: replace(average, duckdb=f"CAST({average.duckdb} AS DECIMAL(14, 6))")]
        return shape.choice(forms)()

    def _number(self, columns: Sequence[ScopeColumn]) -> SqlText:
        """What can be summed without overflow."""
        shape = self.shape
        numeric = [c for c in columns if c.kind in NUMERIC_KINDS and c.domain != "big"]
        if not numeric:
            return sql("{}", self.constants.randint(1, 3))
        column = shape.choice(numeric)
        other = shape.choice([c for c in numeric if c.kind in _EXACT_KINDS] or [column])
        forms: list[Callable[[], SqlText]] = [lambda: column.text] * 3
        forms += [
            lambda: sql("{} * {}", column.text, self.constants.randint(1, 3)),
            lambda: sql("CASE WHEN {} THEN {} END", self.expressions.predicate(columns, 0), column.text),
            lambda: sql("coalesce({}, 0)", column.text),
        ]
        if column.kind in _EXACT_KINDS and other.kind in _EXACT_KINDS:
            product = sql("{} * {}", column.text, other.text)
            is_small = "smallint" not in (column.kind, other.kind)
            forms += [lambda: product] if is_small else []
        return shape.choice(forms)()

    def _count(self, columns: Sequence[ScopeColumn]) -> SqlText:
        one, other = (self.shape.choice(list(columns)).text for _ in range(2))
        if self.shape.random() < 0.7:
            return sql("COUNT({})", one)
        both = sql("COUNT({}, {})", one, other)
        are_there = f"{one.duckdb} IS NOT NULL AND {other.duckdb} IS NOT NULL"
        return replace(both, duckdb=f"COUNT(CASE WHEN {are_there} THEN 1 END)")

    def _count_distinct(self, columns: Sequence[ScopeColumn]) -> SqlText:
        one, other = (self.shape.choice(list(columns)).text for _ in range(2))
        both = sql("COUNT(DISTINCT {}, {})", one, other)
        are_there = f"{one.duckdb} IS NOT NULL AND {other.duckdb} IS NOT NULL"
        return replace(both, duckdb=f"COUNT(DISTINCT CASE WHEN {are_there} THEN ({one.duckdb}, {other.duckdb}) END)")
