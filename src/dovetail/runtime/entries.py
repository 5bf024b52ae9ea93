"""Thousands of flat records, kept by column.

A batch of hundreds of queries counts thousands of steps and selections. As objects each of them would be one more that
Python's garbage collector walks through, as long as somebody remembers the batch: with 500 queries a full collection
took half a second, every seventh batch. Here a column is one list, and a record is made when it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from operator import attrgetter
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Entries(Generic[T]):
    """Records of one dataclass with at least two fields, which are only ever added."""

    def __init__(self, entry: type[T], entries: Iterable[T] = ()) -> None:
        self._entry = entry
        self._columns: list[list[Any]] = [[] for _ in fields(entry)]  # type: ignore[arg-type]
        self._values = attrgetter(*(each.name for each in fields(entry)))  # type: ignore[arg-type]
        for each in entries:
            self.append(each)

    @staticmethod
    def of_columns(entry: type[T], columns: list[list[Any]]) -> Entries[T]:
        found = Entries(entry)
        found.extend_columns(columns)
        return found

    @property
    def columns(self) -> list[list[Any]]:
        """The values of all records field by field, in the order of the fields."""
        return self._columns

    def append(self, each: T) -> None:
        for column, value in zip(self._columns, self._values(each), strict=True):
            column.append(value)

    def extend(self, other: Entries[T]) -> None:
        self.extend_columns(other.columns)

    def extend_columns(self, columns: Iterable[list[Any]]) -> None:
        for column, more in zip(self._columns, columns, strict=True):
            column.extend(more)

    def __iter__(self) -> Iterator[T]:
        return map(self._entry, *self._columns)

    def __len__(self) -> int:
        return len(self._columns[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entries) and self._entry is other._entry and self._columns == other._columns

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Entries({self._entry.__name__}, {list(self)})"
