"""Random queries for groups of outer, semi and anti joins, whose sides are often derived tables that compute.

What a side computes is NULL where its row is missing, whatever it would be otherwise: constants, NULLs that are
replaced, signs of zero. Aggregates are asked of such columns more often than of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dovetail.core.errors import CrossProduct, UnsupportedSql
from dovetail.frontend.compile_sql import compile_sql
from tests.support.cases import QueryCase, StreamCase
from tests.support.generators.aggregates import AggregateMaker, GroupWindowText
from tests.support.generators.expressions import ScopeColumn, SqlText, join_sql, sql
from tests.support.generators.outer_queries import PAIRING, TELLING, OuterQueryMaker
from tests.support.generators.queries import Asked, Relation, Window

_COMPUTED = "c"
"""What the names of computed columns begin with; a digit follows."""


class OuterAggregateMaker(AggregateMaker, OuterQueryMaker):
    """Makes one query that asks for groups of a join that is not inner."""

    forms = (*PAIRING, *PAIRING, *TELLING)

    def query(self, name: str) -> QueryCase:
        """Redrawn where its window is that of a derived table whose rows may be missing: no answer would name it.

        And where what was meant to connect its sides is a constant of one of them.
        """
        while True:
            try:
                made = super().query(name)
            except CrossProduct:
                continue
            try:
                compile_sql(made.sql, {stream.name: stream.stream for stream in self.streams})
            except UnsupportedSql as error:
                if "window" not in error.what:
                    raise
                self.may_window = False
                continue
            return made

    def relation_count(self) -> int:
        return 2

    def _residuals(self, relations: tuple[Relation, ...]) -> list[SqlText]:
        # A condition on pairs needs them to be built.
        return super()._residuals(relations) if self.shape.random() < 0.3 else []

    def _relation(self, stream: StreamCase, alias: str, window: Window | None) -> Relation:
        relation = super()._relation(stream, alias, window)
        return relation if self.shape.random() < 0.2 else self._with_computed(relation)

    def _with_computed(self, relation: Relation) -> Relation:
        """The relation in one more derived table, which adds constants and computed columns."""
        inner = [replace(column, text=_bare(column.text)) for column in relation.columns]
        items, columns = [sql("*")], list(relation.columns)
        for position in range(self.shape.randint(1, 3)):
            value, kind = self._computed(inner)
            items.append(sql("{} AS {}{}", value, _COMPUTED, position))
            columns.append(ScopeColumn(sql("{}.{}{}", relation.alias, _COMPUTED, position), kind))
        source = sql("(SELECT {} FROM {} AS {})", join_sql(", ", items), relation.source, relation.alias)
        return replace(relation, source=source, columns=tuple(columns))

    def _computed(self, columns: Sequence[ScopeColumn]) -> tuple[SqlText, str]:
        shape, constants = self.shape, self.constants
        numbers = [c for c in columns if c.kind in ("int", "double", "float") and c.domain != "big"]
        whole = [c for c in columns if c.kind == "int"]
        forms: list[tuple[SqlText, str]] = [
            (sql("{}", constants.randint(-2, 5)), "int"),
            (sql("CAST(NULL AS INT)"), "int"),
            (sql("'x'"), "string"),
            (sql("TRUE"), "boolean"),
            (sql("CAST(0 AS DOUBLE)"), "double"),
            (sql("({})", self.expressions.predicate(columns, 0)), "boolean"),
        ]
        if numbers:
            column = shape.choice(numbers)
            forms += [(sql("(- {})", column.text), column.kind), (sql("coalesce({}, 1)", column.text), column.kind)]
        if whole:
            column = shape.choice(whole)
            forms += [(sql("{} + 0", column.text), "int"), (sql("{} IS NULL", column.text), "boolean")]
        return shape.choice(forms)

    def asked(self, relations: tuple[Relation, ...]) -> Asked:
        """Mostly the side that is never missing makes the groups, and the other one is what they are asked of."""
        whole = relations[-1] if self.form.startswith("RIGHT") else relations[0]
        self._key_side = self.shape.choice([whole, whole, whole, *relations, None])
        return super().asked(relations)

    def _group_key(self, columns: Sequence[ScopeColumn]) -> SqlText:
        own = () if self._key_side is None else [c for c in self._key_side.columns if c.kind != "window"]
        return super()._group_key(own or columns)

    def _items(
        self, columns: Sequence[ScopeColumn], keys: Sequence[SqlText], window: GroupWindowText | None
    ) -> list[SqlText]:
        return super()._items(self._asked_of(columns), keys, window)

    def _having(
        self, columns: Sequence[ScopeColumn], keys: Sequence[SqlText], window: GroupWindowText | None
    ) -> SqlText:
        return super()._having(self._asked_of(columns), keys, window)

    def _asked_of(self, columns: Sequence[ScopeColumn]) -> Sequence[ScopeColumn]:
        """Columns of one side, as a rule: a value of both needs their joined rows."""
        if self._key_side is None or self.shape.random() < 0.2:
            return columns
        own = f"{self._key_side.alias}."
        return [c for c in columns if not c.text.dovetail.startswith(own)] or columns

    def aggregate(self, columns: Sequence[ScopeColumn]) -> SqlText:
        computed = [c for c in columns if c.text.dovetail.rpartition(".")[2][:1] == _COMPUTED]
        asked_of = computed if computed and self.shape.random() < 0.7 else columns
        made = super().aggregate(asked_of)
        # Distinct values need the joined rows as well.
        return super().aggregate(asked_of) if "DISTINCT" in made.dovetail else made


def _bare(text: SqlText) -> SqlText:
    return SqlText(*(each.rpartition(".")[2] for each in (text.dovetail, text.spark, text.duckdb)))
