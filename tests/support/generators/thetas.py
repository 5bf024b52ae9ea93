"""Random join conditions that are no equality of one column with another, in three dialects (see `random_expressions`).

Inequalities, bands in every spelling, two inequalities together, expressions that no index helps with: over numbers of
all types, strings, dates, timestamps and booleans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tests.support.generators.expressions import (
    INTEGER_KINDS,
    NUMERIC_KINDS,
    TIME_KINDS,
    ExpressionMaker,
    ScopeColumn,
    SqlText,
    interval,
    join_sql,
    shifted_date,
    sql,
)

_OPERATORS = ("<", "<=", ">", ">=")
_HALF_SECOND = 500_000
Columns = Sequence[ScopeColumn]


class ThetaMaker:
    """Makes conditions between columns of two relations."""

    def __init__(self, shape: Random, constants: Random) -> None:
        self.shape = shape
        self.constants = constants
        self.expressions = ExpressionMaker(shape, constants)

    def condition(self, one: Columns, other: Columns) -> SqlText | None:
        """None if the two have no columns that compare."""
        pairs = [(x, y) for x in one for y in other if _group(x) and _group(x) == _group(y)]
        if not pairs:
            return None
        parts = [self._of_pair(*self.shape.choice(pairs))]
        if self.shape.random() < 0.35:
            parts.append(self._of_pair(*self.shape.choice(pairs)))
        form = " OR " if len(parts) > 1 and self.shape.random() < 0.25 else " AND "
        joined = join_sql(form, parts)
        if self.shape.random() < 0.1:
            joined = sql("{} OR {}", joined, self.expressions.predicate([*one, *other], 0))
        return sql("({})", joined)

    def over_three(self, one: Columns, second: Columns, third: Columns) -> SqlText | None:
        """A condition that two of the relations alone cannot decide."""
        chosen = []
        for columns in (one, second, third):
            integers = [column for column in columns if column.kind in INTEGER_KINDS]
            if not integers:
                return None
            chosen.append(self.shape.choice(integers).text)
        return sql(self.shape.choice(["{} + {} < {}", "{} - {} = {}", "{} + {} BETWEEN {} - 1 AND 4"]), *chosen)

    def _of_pair(self, x: ScopeColumn, y: ScopeColumn) -> SqlText:
        group = _group(x)
        operator = self.shape.choice(_OPERATORS)
        plain = sql("{} {} {}", x.text, operator, y.text)
        if group == "number":
            return self._numbers(x.text, y.text, operator)
        if group == "date":
            near, far = self.constants.randint(0, 1), self.constants.randint(0, 2)
            return self._one_of(
                lambda: plain,
                lambda: sql("{} {} {}", shifted_date(x.text, near), operator, y.text),
                lambda: sql("{} BETWEEN {} AND {}", x.text, shifted_date(y.text, -near), shifted_date(y.text, far)),
            )
        if group in TIME_KINDS:
            short, long = (interval(self.constants.randint(0, 6) * _HALF_SECOND) for _ in range(2))
            return self._one_of(
                lambda: plain,
                lambda: sql("{} {} {} + {}", x.text, operator, y.text, short),
                lambda: sql("{} BETWEEN {} - {} AND {} + {}", x.text, y.text, short, y.text, long),
                lambda: sql("{} - {} {} {}", x.text, y.text, operator, short),
            )
        return plain

    def _numbers(self, x: SqlText, y: SqlText, operator: str) -> SqlText:
        near = self.constants.choice(["0", "1", "2", "0.25", "1.5"])
        far = self.constants.choice(["0", "1", "3", "2.75"])
        return self._one_of(
            lambda: sql("{} {} {}", x, operator, y),
            lambda: sql("{} {} {} + {}", x, operator, y, near),
            lambda: sql("{} - {} {} {}", x, near, operator, y),
            lambda: sql("abs({} - {}) <= {}", x, y, near),
            lambda: sql("abs({} - {}) < {}", x, y, far),
            lambda: sql("{} BETWEEN {} - {} AND {} + {}", x, y, near, y, far),
            lambda: sql("{} - {} BETWEEN -{} AND {}", x, y, near, far),
            lambda: sql("{} - {} {} {}", x, y, operator, near),
            lambda: sql("{} >= {} AND {} - {} < {}", x, y, x, far, y),
            lambda: sql("{} + {} {} {}", x, y, operator, far),
            lambda: sql("{} * 2 {} {}", x, operator, y),
            lambda: sql("abs({}) {} abs({})", x, operator, y),
            lambda: sql("{} <> {}", x, y),
            lambda: sql("{} - {} = {}", x, y, near),
        )

    def _one_of(self, *forms: Callable[[], SqlText]) -> SqlText:
        return self.shape.choice(forms)()


def _group(column: ScopeColumn) -> str:
    """Columns of one group compare in all dialects; "" for those that do not."""
    if column.kind in NUMERIC_KINDS:
        return "number"
    return column.kind if column.kind in ("string", "date", "boolean", *TIME_KINDS) else ""
