"""Checks and casts of function arguments."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.frontend.bind.coerce import cast_to
from dovetail.frontend.merge_branches import merge_branches
from dovetail.frontend.read_types import can_cast
from dovetail.query.expression import Expression, Literal
from dovetail.query.types import DATE, INT, NULL, STRING, TIMESTAMP

Builder = Callable[[list[Expression], str], Expression]
"""Of bound arguments and the time zone: the typed expression."""


class FunctionError(ValueError):
    """Arguments that do not fit a function."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def check_count(args: list[Expression], least: int, most: int | None) -> None:
    if len(args) < least or (most is not None and len(args) > most):
        wanted = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        raise FunctionError(f"{len(args)} arguments", f"pass {wanted}")


def merged(args: list[Expression], timezone: str) -> list[Expression]:
    """All arguments in one type."""
    branches = merge_branches(args, timezone)
    if branches is None or branches[0].type.name in ("window", "interval"):
        kinds = sorted({str(arg.type) for arg in args})
        raise FunctionError(f"arguments of {' and '.join(kinds)}", f"write CAST(... AS {kinds[0].upper()})")
    return branches


def as_string(arg: Expression, timezone: str) -> Expression:
    """Spark casts other types to text on its own; so does this where the text is exactly Spark's."""
    if arg.type == STRING:
        return arg
    problem = can_cast(arg.type, STRING)
    if problem is not None:
        raise FunctionError(f"an argument of {arg.type}", problem)
    return cast_to(arg, STRING, timezone)


def as_int(arg: Expression, timezone: str) -> Expression:
    if arg.type.name not in ("tinyint", "smallint", "int", "null"):
        raise FunctionError(f"an argument of {arg.type}", "write CAST(... AS INT)")
    return cast_to(arg, INT, timezone)


def as_date(arg: Expression, timezone: str) -> Expression:
    """Dates stay, timestamps lose their time of day."""
    if arg.type == DATE:
        return arg
    if arg.type == NULL or arg.type.is_time:
        return cast_to(arg, DATE, timezone)
    raise FunctionError(f"an argument of {arg.type}", "write CAST(... AS DATE)")


def as_time(arg: Expression, timezone: str) -> Expression:
    if arg.type.is_time:
        return arg
    if arg.type in (NULL, DATE):
        return cast_to(arg, TIMESTAMP, timezone)
    raise FunctionError(f"an argument of {arg.type}", "write CAST(... AS TIMESTAMP)")


def constant_text(arg: Expression, what: str) -> str:
    if not isinstance(arg, Literal) or not isinstance(arg.value, str):
        raise FunctionError(f"{what} is no constant text", "write it as 'text'")
    return arg.value


def constant_int(arg: Expression, what: str) -> int:
    if not isinstance(arg, Literal) or not arg.type.is_integer or arg.value is None:
        raise FunctionError(f"{what} is no constant integer", "write the number")
    return int(arg.value)
