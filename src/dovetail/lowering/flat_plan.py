"""A shared plan as flat arrays, hop by hop: what compiled code walks through instead of plan objects (A4).

    ProbeNode with any number of legs   ->   flat nodes of at most 64 legs: each leg is a bit of a word

A leg keeps its bit on its whole path, so what goes on to a child is `word & mask of the child`, and nothing is moved.
Everything is known by number: stores by their place in the plan, and what is asked of them by its place in a list here.
Made once for a plan; the same plan gives the same arrays in every process, so tasks may send each other the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

from dovetail.kernels.match.match_hop import NodeArrays
from dovetail.plan.probe_tree import Emit, Leg, ProbeNode
from dovetail.plan.store_plan import IndexPlan
from dovetail.query.expression import Column, Expression

NONE = -1
"""In place of a number: there is no such thing."""

I64 = npt.NDArray[np.int64]


class Way(Enum):
    """How a node's pairs are found."""

    BY_KEYS = "by keys"  # all such nodes of a hop in one pass of compiled code
    ALONE = "alone"  # a node by itself: within ranges, or without building the joined rows


@dataclass(frozen=True)
class Ask:
    """A selection of rows of one store for whoever wants none from before a batch; its text is what buckets know."""

    store: int
    selection: Expression
    first_batch: int
    text: str = field(compare=False, default="")


@dataclass(frozen=True)
class CodeColumn:
    """The code of a key by row of its store: `columns` of the row, placed by one of them or by all."""

    store: int
    columns: tuple[Column, ...]
    placing: int | None


@dataclass(frozen=True)
class FlatLeg:
    """A leg's `bit` in the words of its flat node; `start_ask` is what it asks of new rows, in the first hop only."""

    leg: Leg
    place: int
    bit: int
    ask: int
    start_ask: int
    emit: Emit | None


@dataclass(frozen=True)
class FlatNode:
    """Some legs of a node. `stores` are those of the members that come to it; a fill starts from stored rows."""

    node: ProbeNode
    number: int
    stores: tuple[str, ...]
    legs: tuple[FlatLeg, ...]
    children: tuple[tuple[int, int], ...]
    index: int
    way: Way
    key_member: int
    key_codes: int
    fill: str | None

    @property
    def mask(self) -> int:
        return sum(1 << leg.bit for leg in self.legs)


@dataclass(frozen=True)
class FlatHop:
    """`leg_node` and `leg_query` are by the number of a leg in the hop; queries by their place in the plan's list."""

    nodes: tuple[FlatNode, ...]
    legs: tuple[FlatLeg, ...]
    arrays: NodeArrays
    leg_node: I64
    leg_query: I64

    @property
    def members(self) -> int:
        """How many rows a row in flight consists of."""
        return len(self.nodes[0].stores) if self.nodes else 0


@dataclass(frozen=True)
class FlatPlan:
    hops: tuple[FlatHop, ...]
    stores: tuple[str, ...]
    queries: tuple[str, ...]
    asks: tuple[Ask, ...]
    indexes: tuple[tuple[str, IndexPlan], ...]
    code_columns: tuple[CodeColumn, ...]
