"""Where a syntax node stands in the user's text.

sqlglot keeps the positions of some nodes only, and its columns count from a token's end. So the
parser stamps each node with a character offset, and line and column are counted here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dovetail.query.expression import Expression

OFFSET_KEY = "start"
Bound = list[tuple[Expression, exp.Expr]]
"""An expression and everything in it, parts first, each with its node."""


@dataclass(frozen=True)
class SourceText:
    """The text of one query; `bound` are its expressions, and where each part of them stands."""

    text: str
    bound: list[Bound] = field(default_factory=list)

    def where(self, node: exp.Expr | int | None) -> str:
        """«line L, column C», both from 1; a node starts where its leftmost part starts."""
        offset = node if isinstance(node, int) else offset_of(node)
        offset = min(max(offset, 0), len(self.text))
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        return f"line {line}, column {column}"


def offset_of(node: exp.Expr | None) -> int:
    if node is None:
        return 0
    offsets = [part.meta[OFFSET_KEY] for part in node.walk() if isinstance(part.meta.get(OFFSET_KEY), int)]
    return min(offsets, default=0)
