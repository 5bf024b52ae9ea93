"""One option as a field of a record: its default, and in a line what it does. Checks that several records need."""

from __future__ import annotations

from dataclasses import Field, field, fields
from typing import Any, TypeVar

from dovetail.core.errors import SessionError

T = TypeVar("T")


def option(default: T, what: str, shown: str | None = None) -> T:
    """`what` and `shown`, the default in words, are for docs/options.md."""
    return field(default=default, metadata={"what": what, "shown": shown})


def options_of(record: type[Any]) -> dict[str, Field[Any]]:
    return {entry.name: entry for entry in fields(record)}


def check_one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise SessionError(f"{name} is {value!r}", hint=f"use one of {', '.join(map(repr, choices))}")


def check_whole(name: str, value: Any, smallest: int) -> None:
    if not isinstance(value, int) or value < smallest:
        raise SessionError(f"{name} is {value!r}", hint=f"use a whole number from {smallest} on")
