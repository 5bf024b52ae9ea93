"""The walk over syntax nodes that all readers share.

A reader turns one kind of node into a typed expression. Readers live in tables, one per topic
(`bind_operators`, `bind_predicates`, `bind_functions`); `bind_expressions` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from sqlglot import exp

from dovetail.core.errors import TypeMismatch
from dovetail.frontend.bind.coerce import cast_to
from dovetail.frontend.bind.names import Scope
from dovetail.frontend.parse.source_text import OFFSET_KEY, Bound
from dovetail.frontend.parse.unsupported import refuse, refuse_leftovers, refuse_node
from dovetail.query.expression import Expression
from dovetail.query.types import BOOLEAN, NULL, STRING, SqlType

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "eq_null_safe",
    exp.NullSafeNEQ: "eq_null_safe",
}
_PREDICATES: tuple[type[exp.Expr], ...] = (
    *COMPARISONS,
    exp.Between,
    exp.In,
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
    exp.Escape,
    exp.Is,
)
_UNPARENTHESIZED: tuple[type[exp.Expr], ...] = (*_PREDICATES, exp.Not, exp.And, exp.Or)

Reader = Callable[["NodeBinder", exp.Expr], Expression]


class ReaderTable(dict[type[exp.Expr], Reader]):
    """Readers by the kind of node they read."""

    def reads(self, *kinds: type[exp.Expr]) -> Callable[[Reader], Reader]:
        """Enter the function below under these kinds."""

        def enter(reader: Reader) -> Reader:
            for kind in kinds:
                self[kind] = reader
            return reader

        return enter


class NodeBinder:
    """What readers of syntax nodes share: the scope, the text, the session's time zone."""

    readers: ClassVar[Mapping[type[exp.Expr], Reader]] = {}

    def __init__(self, scope: Scope, timezone: str) -> None:
        self.scope = scope
        self.source = scope.source
        self.timezone = timezone
        self._depth = 0
        self._bound: Bound = []
        """What the outermost node under way consists of."""

    def bind(self, node: exp.Expr) -> Expression:
        reader = self.readers.get(type(node))
        if reader is None:
            raise refuse_node(node, self.source)
        self._depth += 1
        try:
            bound = reader(self, node)
        finally:
            self._depth -= 1
        self._bound.append((bound, node))
        if self._depth == 0:
            self.source.bound.append(self._bound)
            self._bound = []
        return bound

    def bind_condition(self, node: exp.Expr) -> Expression:
        return self.as_boolean(self.bind(node), node)

    def bind_filter(self, node: exp.Expr) -> Expression:
        """A whole WHERE, ON or HAVING: a NULL without a type, which may stand inside one, is none for Spark."""
        bound = self.bind(node)
        if bound.type == NULL:
            raise TypeMismatch(
                "a filter that is NULL, without a type",
                where=self.source.where(node),
                hint="write CAST(NULL AS BOOLEAN)",
            )
        return self.as_boolean(bound, node)

    def as_boolean(self, expression: Expression, node: exp.Expr) -> Expression:
        if expression.type not in (BOOLEAN, NULL):
            raise TypeMismatch(
                f"a condition of type {expression.type}",
                where=self.source.where(node),
                hint="compare it with something, or write CAST(... AS BOOLEAN)",
            )
        return cast_to(expression, BOOLEAN, self.timezone)

    def consume(self, node: exp.Expr, *keys: str) -> None:
        refuse_leftovers(node, keys, self.source)

    def operand(self, node: exp.Expr, key: str = "this") -> Expression:
        """An operand of an operator. Spark and sqlglot nest bare predicates differently, so they need parentheses."""
        child = node.args.get(key)
        if not isinstance(child, exp.Expr):
            raise refuse_node(node, self.source)
        if isinstance(child, exp.Paren) and OFFSET_KEY not in child.meta:
            # sqlglot's own parentheses, not the user's.
            child = child.this
        if isinstance(child, _UNPARENTHESIZED):
            what = "a condition as operand without parentheses"
            raise refuse(what, self.source.where(child), "put the inner condition into parentheses")
        return self.bind(child)

    def mismatch(self, node: exp.Expr, what: str, a: SqlType, b: SqlType) -> TypeMismatch:
        target = next((t for t in (a, b) if t not in (STRING, NULL)), a)
        hint = f"write CAST(... AS {str(target).upper()}) around the other side"
        return TypeMismatch(f"{what} of {a} and {b}", where=self.source.where(node), hint=hint)
