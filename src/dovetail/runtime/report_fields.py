"""How the fields of a report travel to the driver, and how the reports of several tasks become one.

Both are said once, where a field is declared. A field that says nothing is refused as soon as its record is defined:

    streams: list[StreamCount] = listed(StreamCount)      all tasks' entries, one after the other
    steps: Entries[StepCount] = in_columns(StepCount)     the same, of thousands: kept by column
    seconds_by_part: dict[str, float] = summed()          by key, the sum over all tasks
    void_queries: set[str] = kept_in_task(set)            never leaves the task
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from dovetail.runtime.entries import Entries

T = TypeVar("T")
V = TypeVar("V")
Convert = Callable[[Any], Any]
_RULE = "rule"


@dataclass(frozen=True)
class Rule:
    """`add` puts a task's value to that of the others, in place; the value travels as JSON."""

    add: Callable[[Any, Any], None]
    to_json: Convert
    from_json: Convert


def listed(entry: type[T], to_json: Convert | None = None, from_json: Convert | None = None) -> list[T]:
    """Flat records travel by column; others say how each of them does."""
    if to_json is None or from_json is None:
        rule = Rule(
            list.extend,
            lambda entries: Entries(entry, entries).columns,
            lambda columns: list(Entries.of_columns(entry, columns)),
        )
    else:
        one_to_json, one_from_json = to_json, from_json
        rule = Rule(
            list.extend,
            lambda entries: [one_to_json(each) for each in entries],
            lambda records: [one_from_json(each) for each in records],
        )
    declared: list[T] = field(default_factory=list, metadata={_RULE: rule})
    return declared


def in_columns(entry: type[T]) -> Entries[T]:
    """Flat records of which there are thousands: they are kept as they travel."""
    rule = Rule(Entries.extend, lambda entries: entries.columns, lambda columns: Entries.of_columns(entry, columns))
    declared: Entries[T] = field(default_factory=lambda: Entries(entry), metadata={_RULE: rule})
    return declared


def summed(to_json: Convert = lambda value: value, from_json: Convert = lambda value: value) -> dict[str, V]:
    """Values that can be added."""
    rule = Rule(
        _add_by_key,
        lambda values: {key: to_json(value) for key, value in values.items()},
        lambda values: {key: from_json(value) for key, value in values.items()},
    )
    declared: dict[str, V] = field(default_factory=dict, metadata={_RULE: rule})
    return declared


def kept_in_task(make: Callable[[], T]) -> T:
    """What a task notes for itself: no part of what it reports."""
    declared: T = field(default_factory=make, compare=False, metadata={_RULE: None})
    return declared


def rules_of(record: type) -> dict[str, Rule]:
    """By field that travels. Raises if a field was declared without one of the above."""
    declared = fields(record)
    forgotten = [each.name for each in declared if _RULE not in each.metadata]
    if forgotten:
        raise TypeError(f"{record.__name__} does not say how tasks' {', '.join(forgotten)} become one")
    return {each.name: each.metadata[_RULE] for each in declared if each.metadata[_RULE] is not None}


def _add_by_key(whole: dict[str, Any], part: dict[str, Any]) -> None:
    for key, value in part.items():
        whole[key] = whole[key] + value if key in whole else value
