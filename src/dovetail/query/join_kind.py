"""Which rows a join of two relations answers: pairs, and rows by whether they have a partner."""

from __future__ import annotations

from enum import Enum


class JoinKind(Enum):
    """The first relation is the left one.

    A row is *lone* if it has no partner. Outer joins answer pairs, and lone rows with NULLs in place of the partner;
    a semi join answers each left row that has a partner, once; an anti join the lone left rows.
    """

    INNER = "inner"
    LEFT = "left outer"
    RIGHT = "right outer"
    FULL = "full outer"
    SEMI = "left semi"
    ANTI = "left anti"

    @property
    def answers_pairs(self) -> bool:
        return self not in (JoinKind.SEMI, JoinKind.ANTI)

    @property
    def lone_places(self) -> tuple[int, ...]:
        """The places, 0 or 1, of the relations whose lone rows are answered."""
        return _LONE_PLACES[self]


_LONE_PLACES = {
    JoinKind.INNER: (),
    JoinKind.LEFT: (0,),
    JoinKind.RIGHT: (1,),
    JoinKind.FULL: (0, 1),
    JoinKind.SEMI: (),
    JoinKind.ANTI: (0,),
}
