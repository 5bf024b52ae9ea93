"""How rows are told that have no partner, and those that have one: what outer, anti and semi joins answer of a batch.

Nothing is marked in a store. A row of event time t is *decided* when the watermark of its partners' stream has passed
t + U, where U is how much later a partner may be: what comes from then on is no partner, so the stored rows tell
whether it has one. Each batch decides the rows between the watermark of the batch before and its own, and those of its
new rows that are below already. So every row is decided in one batch, and no batch needs to know what others answered.

    a LEFT JOIN b ON a.k = b.k AND b.ts <= a.ts + 5 s
    watermark of b 12:00:20 -> 12:00:30     decides rows of a from [12:00:15, 12:00:25), and new ones below 12:00:25

Rows that can have no partner at all (a NULL in the key or no event time) are decided in the batch they arrive in.
Queries that go the same step, and for which rows are decided at the same time, ask together: one leg each.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.plan.probe_tree import Emit, ProbeNode, ProbeTree
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import TRUE, Expression


def only_node(tree: ProbeTree) -> ProbeNode:
    """The one step of a tree that tells who has a partner."""
    (node,) = tree.children
    return node


def _check_witnesses(tree: ProbeTree, visibility: Visibility, answer_count: int) -> None:
    node = only_node(tree)
    takers = [(leg.query, leg.start) for leg in node.legs]
    if takers != [(leg.query, leg.start) for leg in tree.legs] or len(takers) != answer_count:
        raise ValueError(f"node {node.id}: every answer needs a leg, at the start and at the step")
    if not all(emit.is_witness for emit in node.emits):
        raise ValueError(f"node {node.id} only tells who are partners")
    if node.step.visibility is not visibility:
        raise ValueError(f"node {node.id} must see {visibility.value}")


@dataclass(frozen=True)
class LoneAnswer:
    """What one query answers of a lone row, where `where` is true.

    In both the row is m0, and m1 is absent: all its columns are NULL.
    """

    emit: Emit
    where: Expression = TRUE


@dataclass(frozen=True)
class LoneRows:
    """Decided rows of `tree.start` that find nothing in the tree; its n-th leg asks for the n-th of the `answers`.

    Rows are decided by `partner_stream`: its rows are at most `upper_us` later than their partners.
    """

    tree: ProbeTree
    answers: tuple[LoneAnswer, ...]
    partner_stream: str
    upper_us: int

    def __post_init__(self) -> None:
        _check_witnesses(self.tree, Visibility.UP_TO_NOW, len(self.answers))

    def decided_until(self, watermark_us_by_stream: dict[str, int]) -> int | None:
        """Rows of an earlier event time are decided; None before the partners' stream has a watermark."""
        watermark_us = watermark_us_by_stream.get(self.partner_stream)
        return None if watermark_us is None else watermark_us - self.upper_us


@dataclass(frozen=True)
class MatchedRows:
    """Rows of semi joins, each answered (there it is m0) in the batch in which its first partner is there.

    A new left row goes `from_left`. A new right row goes `from_right` to left rows of earlier batches, and of those
    the ones are answered that find no right row of an earlier batch when they go `again`. The n-th leg of each tree
    asks for the n-th of the `emits`.
    """

    from_left: ProbeTree
    from_right: ProbeTree
    again: ProbeTree
    emits: tuple[Emit, ...]

    def __post_init__(self) -> None:
        _check_witnesses(self.from_left, Visibility.UP_TO_NOW, len(self.emits))
        _check_witnesses(self.from_right, Visibility.EARLIER, len(self.emits))
        _check_witnesses(self.again, Visibility.EARLIER, len(self.emits))

    @property
    def trees(self) -> tuple[ProbeTree, ...]:
        return (self.from_left, self.from_right, self.again)
