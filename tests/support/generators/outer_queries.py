"""Random outer, semi and anti joins of two relations, in three dialects, bounded in time so that rows are decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.support.cases import QueryCase
from tests.support.generators.expressions import SqlText, interval, join_sql, sql
from tests.support.generators.queries import SECOND, Asked, QueryMaker, Relation, duration_text, spelled_out_within

PAIRING = ("LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL OUTER JOIN", "FULL JOIN")
TELLING = ("LEFT SEMI JOIN", "LEFT ANTI JOIN", "EXISTS", "NOT EXISTS", "IN")

_AS_SUBQUERIES = {"LEFT SEMI JOIN": "EXISTS", "LEFT ANTI JOIN": "NOT EXISTS"}
"""DuckDB 2.0 answers an ANTI JOIN with several inequalities wrongly, and the same with NOT EXISTS rightly."""


class OuterQueryMaker(QueryMaker):
    """Makes one query; conditions of one side and on the padded side included."""

    forms: Sequence[str] = (*PAIRING, *TELLING)
    form = ""
    """That of the query that is made."""

    def query(self, name: str) -> QueryCase:
        form = self.form = self.shape.choice(self.forms)
        relations = self._two_relations()
        conditions, within_all = self._partner_conditions(relations, form)
        one_sided = [self.expressions.predicate(r.columns) for r in relations if self.shape.random() < 0.15]
        spelled_out = spelled_out_within(relations, within_all)
        where = self._where(relations, form)
        asked = self.asked(relations if form in PAIRING else relations[:1])
        first, second = (self._relation_text(relation) for relation in relations)
        on = [*conditions, *one_sided]
        text = _text(form, asked, first, second, on, where)
        batch_text = _text(form, asked, first, second, [*on, *spelled_out], where)
        suffix = "" if within_all is None else f" WITHIN {duration_text(within_all)}"
        return QueryCase(name, text.dovetail + suffix, batch_text.spark, batch_text.duckdb)

    def _two_relations(self) -> tuple[Relation, Relation]:
        while True:
            relations = self._relations(self.time_form())
            if len(relations) == 2 and all(relation.event_time for relation in relations):
                return relations[0], relations[1]

    def _partner_conditions(self, relations: tuple[Relation, Relation], form: str) -> tuple[list[SqlText], int | None]:
        """Keys, and time in a form that bounds how late partners come: windows, WITHIN or conditions."""
        one, other = relations
        theta = self.thetas.condition(one.columns, other.columns)
        has_keys = theta is None or form == "IN" or self.shape.random() < 0.8
        conditions = self._edge_keys(one, other) if has_keys or theta is None else [theta]
        conditions += self._residuals(relations)
        if one.window and other.window:
            return [*conditions, sql("{} = {}", one.window, other.window)], None
        if one.within_us is not None and other.within_us is not None:
            return conditions, None
        if self.shape.random() < 0.3:
            return conditions, self.constants.randint(0, 12) * SECOND // 2
        times = (self._time_of(one), self._time_of(other))
        if self.shape.random() < 0.25:
            return [*conditions, *self._needed_bounds(form, *times)], None
        return [*conditions, self._time_bound(*self.shape.choice([times, times[::-1]]))], None

    def _needed_bounds(self, form: str, first: SqlText, second: SqlText) -> list[SqlText]:
        """How late partners come of rows that are answered without one, and nothing else."""
        late = [interval(self.constants.randint(0, 8) * SECOND // 2) for _ in range(2)]
        bounds = []
        if form.startswith(("LEFT", "FULL", "NOT")) and "SEMI" not in form:
            bounds.append(sql(self.shape.choice(["{} <= {} + {}", "{} <= {} - {}"]), second, first, late[0]))
        if form.startswith(("RIGHT", "FULL")):
            bounds.append(sql("{} - {} <= {}", first, second, late[1]))
        return bounds

    def _where(self, relations: tuple[Relation, Relation], form: str) -> list[SqlText]:
        shape = self.shape
        where = []
        answered = relations if form in PAIRING else relations[:1]
        for relation in answered:
            if shape.random() < 0.1:
                where.append(self.expressions.predicate(relation.columns))
            if shape.random() < 0.15:
                column = shape.choice([each for each in relation.columns if each.kind != "window"])
                where.append(sql(shape.choice(["{} IS NULL", "{} IS NOT NULL"]), column.text))
        if form in PAIRING and shape.random() < 0.15:
            where += self._residuals(relations)
        return where


def _text(form: str, asked: Asked, first: SqlText, second: SqlText, on: list[SqlText], where: list[SqlText]) -> SqlText:
    partners, items = join_sql(" AND ", on), asked.items
    if form in PAIRING or form.endswith("JOIN"):
        source = sql("SELECT {} FROM {} {} {} ON {}", items, first, form, second, partners)
    else:
        source = sql("SELECT {} FROM {}", items, first)
        if form == "IN":
            operand, column = _sides(on[0])
            rest = sql(" WHERE {}", join_sql(" AND ", on[1:])) if on[1:] else sql("")
            where = [sql("{} IN (SELECT {} FROM {}{})", operand, column, second, rest), *where]
        else:
            word = "NOT EXISTS" if form == "NOT EXISTS" else "EXISTS"
            where = [*where, sql("{} (SELECT 1 FROM {} WHERE {})", word, second, partners)]
    source = sql("{}{}", source, asked.more_from)
    filtered = sql("{} WHERE {}", source, join_sql(" AND ", where)) if where else source
    text = sql("{}{}", filtered, asked.groups)
    if form in _AS_SUBQUERIES:
        return replace(text, duckdb=_text(_AS_SUBQUERIES[form], asked, first, second, on, where).duckdb)
    return text


def _sides(equality: SqlText) -> tuple[SqlText, SqlText]:
    """What stands left and right of its sign."""
    texts = (equality.dovetail, equality.spark, equality.duckdb)
    left, right = zip(*(text.split(" = ", 1) for text in texts), strict=True)
    return SqlText(*left), SqlText(*right)
