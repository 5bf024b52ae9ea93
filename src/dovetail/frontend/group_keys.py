"""The keys of an aggregation, and what each grouped expression is of a group.

The window of a derived table is grouped by its start alone: one relation has windows of one size, so the start says
the end. The window itself and its end are computed from the key.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.frontend.bind.names import BoundRelation
from dovetail.query.aggregation import GROUP, key_column
from dovetail.query.expression import Call, Column, Expression, Literal
from dovetail.query.join_query import WINDOW_END, WINDOW_START
from dovetail.query.types import INTERVAL, WINDOW


class GroupKeys:
    """Keys in the order in which they are added, each once."""

    def __init__(self, relations: Sequence[BoundRelation]) -> None:
        self._size_by_alias = {r.alias: r.hop_window.size_us for r in relations if r.hop_window is not None}
        self._keys: dict[Expression, Column] = {}
        self._grouped: dict[Expression, Expression] = {}

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(self._keys)

    def grouped(self, expression: Expression) -> Expression | None:
        """What an expression over joined rows is of a group; None if it is no key."""
        return self._grouped.get(expression)

    def add(self, expression: Expression) -> bool:
        """False if nothing can be grouped by an expression of this type."""
        if expression.type.name in ("interval", "null"):
            return False
        if expression.type == WINDOW:
            is_column = isinstance(expression, Call) and all(isinstance(field, Column) for field in expression.args)
            if not is_column:
                return False
            assert isinstance(expression, Call)
            start, end = (self._add_part(field) for field in expression.args)
            self._grouped[expression] = Call("struct", (start, end), WINDOW)
        else:
            self._add_part(expression)
        return True

    def _add_part(self, part: Expression) -> Expression:
        if isinstance(part, Column) and part.name == WINDOW_END and part.relation in self._size_by_alias:
            start = self._key(Column(part.relation, WINDOW_START, part.type))
            size = Literal(self._size_by_alias[part.relation], INTERVAL)
            grouped: Expression = Call("elapse", (start, size), part.type)
        else:
            grouped = self._key(part)
        return self._grouped.setdefault(part, grouped)

    def _key(self, expression: Expression) -> Column:
        column = Column(GROUP, key_column(len(self._keys)), expression.type)
        return self._keys.setdefault(expression, column)
