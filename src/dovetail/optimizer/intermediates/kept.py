"""A join that is kept as a store, and the queries that use it."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.plan.fill import FillSource
from dovetail.plan.intermediate import Intermediate


@dataclass(frozen=True)
class Use:
    """A query that wants the intermediate: which of its relations are the members, which starts shall probe it.

    `starts` are those that may do so now; the others wait until the store holds all they can still join.
    """

    query: str
    aliases: tuple[str, ...]
    wanted_starts: tuple[str, ...]
    starts: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeptIntermediate:
    """An intermediate, the first batch whose rows it joins, who uses it (at least one), and the fill under way."""

    intermediate: Intermediate
    complete_from: int
    uses: tuple[Use, ...]
    fill: FillSource | None = None


def maintained_by(intermediate: Intermediate) -> str:
    """The id of the query whose rows are the store's."""
    return f"store {intermediate.id}"


def member_alias(member: int) -> str:
    """What the maintaining query calls a member."""
    return f"i{member}"
