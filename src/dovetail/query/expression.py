"""Bound, typed expressions: the only form in which user SQL reaches the engine.

Three records: `Column` (a column of one relation), `Literal`, and `Call` (operators, casts and
functions alike, by a name from the front end's allow-list). They are frozen and compare by content,
so equal expressions of different queries are one dictionary key; `str()` is their canonical text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dovetail.query.types import BOOLEAN, TIMESTAMP, TIMESTAMP_NTZ, SqlType

T = TypeVar("T")


def hashed_once(record: type[T]) -> type[T]:
    """Expressions are keys of dictionaries everywhere, and large ones would be hashed through and through each time."""
    whole_hash = record.__hash__

    def __hash__(self: Any) -> int:  # noqa: N807 - a method, given to the class below
        found: int | None = vars(self).get("_hash")
        if found is None:
            found = vars(self)["_hash"] = whole_hash(self)
        return found

    def __getstate__(self: Any) -> dict[str, Any]:  # noqa: N807 - texts hash otherwise in another process
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    record.__hash__ = __hash__  # type: ignore[method-assign]
    record.__getstate__ = __getstate__  # type: ignore[method-assign]
    return record


@hashed_once
@dataclass(frozen=True)
class Column:
    """A column of the relation called `relation` in its query."""

    relation: str
    name: str
    type: SqlType

    def __str__(self) -> str:
        return f"{self.relation}.{self.name}"


@hashed_once
@dataclass(frozen=True)
class Literal:
    """A constant. Timestamps and intervals are integer microseconds, dates `datetime.date`, decimals `Decimal`."""

    value: Any
    type: SqlType

    def __str__(self) -> str:
        if self.value is None:
            return f"NULL:{self.type}"
        return f"{self.value!r}:{self.type}"


@hashed_once
@dataclass(frozen=True)
class Call:
    """A function of expressions: `add`, `eq`, `and`, `case`, `cast`, `upper` ..."""

    function: str
    args: tuple[Expression, ...]
    type: SqlType

    def __str__(self) -> str:
        suffix = f":{self.type}" if self.function == "cast" else ""
        return f"{self.function}({', '.join(map(str, self.args))}){suffix}"


Expression = Column | Literal | Call

TRUE = Literal(True, BOOLEAN)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything in it, parents first."""
    yield expression
    if isinstance(expression, Call):
        for arg in expression.args:
            yield from walk(arg)


def columns_of(expression: Expression) -> frozenset[Column]:
    return frozenset(node for node in walk(expression) if isinstance(node, Column))


def relations_of(expression: Expression) -> frozenset[str]:
    return frozenset(column.relation for column in columns_of(expression))


def transform(expression: Expression, leaf: Callable[[Column], Expression]) -> Expression:
    """The expression with every column replaced by `leaf(column)`."""
    if isinstance(expression, Column):
        return leaf(expression)
    if isinstance(expression, Call):
        return replace(expression, args=tuple(transform(arg, leaf) for arg in expression.args))
    return expression


def rename_relations(expression: Expression, name_by_relation: dict[str, str]) -> Expression:
    return transform(expression, lambda column: replace(column, relation=name_by_relation[column.relation]))


def conjuncts_of(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a chain of ANDs; TRUE has none."""
    if expression == TRUE:
        return ()
    if isinstance(expression, Call) and expression.function == "and":
        return tuple(part for arg in expression.args for part in conjuncts_of(arg))
    return (expression,)


def all_of(parts: tuple[Expression, ...]) -> Expression:
    """One expression that is true where all parts are."""
    if not parts:
        return TRUE
    result = parts[0]
    for part in parts[1:]:
        result = Call("and", (result, part), BOOLEAN)
    return result


def shown_timestamp(expression: Expression) -> Expression | None:
    """`ts` of `CAST(ts AS TIMESTAMP_NTZ)`, which is what the clocks of the session's zone show at it."""
    if not isinstance(expression, Call) or expression.function != "cast" or expression.type != TIMESTAMP_NTZ:
        return None
    return expression.args[0] if expression.args[0].type == TIMESTAMP else None
