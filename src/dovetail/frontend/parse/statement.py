"""What a statement asks for: one frozen record per kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.query.types import SqlType

OptionValue = str | int | float | bool | None
Options = Mapping[str, OptionValue]


@dataclass(frozen=True)
class SelectText:
    """The SELECT inside a statement, cut out exactly.

    `lead` is what stands before it, blanked but for its line ends: an error in `placed` is at the line and column of
    the whole statement, while `sql` is the same query however it was wrapped.
    """

    sql: str
    lead: str = field(default="", compare=False, repr=False)

    @property
    def placed(self) -> str:
        return self.lead + self.sql


@dataclass(frozen=True)
class CreateQuery:
    """`is_replace`: it takes the place of a query of the same name."""

    name: str
    select: SelectText
    options: Options = field(default_factory=dict)
    is_replace: bool = False

    @property
    def sql(self) -> str:
        return self.select.sql


@dataclass(frozen=True)
class DropQuery:
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class AlterQuery:
    """Options that are not named stay as they are."""

    name: str
    options: Options


@dataclass(frozen=True)
class ShowQueries:
    pass


@dataclass(frozen=True)
class ShowStreams:
    pass


@dataclass(frozen=True)
class ExplainQuery:
    name: str


@dataclass(frozen=True)
class ExplainSelect:
    """Of a query that is not created."""

    select: SelectText

    @property
    def sql(self) -> str:
        return self.select.sql


@dataclass(frozen=True)
class CreateStream:
    """Without columns they are those of the source, where it has columns of its own."""

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    options: Options


Statement = (
    CreateQuery | DropQuery | AlterQuery | ShowQueries | ShowStreams | ExplainQuery | ExplainSelect | CreateStream
)
