"""The pairs of one piece of a hop, and the legs of queries that became void while it was worked on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.kernels.match.match_hop import FoundPairs
from dovetail.lowering.flat_plan import FlatHop, FlatPlan
from dovetail.runtime.probe.frame import Frame
from dovetail.runtime.probe.rows_in_flight import RowsInFlight
from dovetail.runtime.report import TaskReport

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass
class HopPairs:
    """Pair i: row in flight `row[i]`, at node `node[i]`, meets the stored row `ref[i]`; the legs in `word[i]` want it.

    A leg that does not want a pair any more loses its bit.
    """

    rows: RowsInFlight
    row: npt.NDArray[np.uint32]
    ref: U64
    word: U64
    node: I64

    def __len__(self) -> int:
        return len(self.row)

    def frame(self, idx: I64, stores: tuple[str, ...]) -> Frame:
        """Some of them, all of members of these stores."""
        row = self.row[idx]
        return Frame(stores, (*(refs[row] for refs in self.rows.refs), self.ref[idx]))


def pairs_in_pieces(rows: RowsInFlight, found: FoundPairs, rows_a_piece: int | None) -> Iterator[HopPairs]:
    """What was found, at most so many at once; a piece without pairs if there are none."""
    count = len(found.row)
    size = count if rows_a_piece is None else rows_a_piece
    for lower in range(0, max(count, 1), max(size, 1)):
        row, ref, word = (column[lower : lower + size] for column in found)
        yield HopPairs(rows, row, ref, word, rows.nodes[row])


class VoidLegs:
    """`masks[node]` are the legs there of queries whose answers of this batch will not count."""

    def __init__(self, flat: FlatPlan, hop: FlatHop, report: TaskReport) -> None:
        self._queries = flat.queries
        self._hop = hop
        self._report = report
        self._known_count = 0
        self.masks: U64 = np.zeros(len(hop.nodes), np.uint64)

    def look(self) -> bool:
        """Whether there are more than before."""
        void = self._report.void_queries
        if len(void) == self._known_count:
            return False
        self._known_count = len(void)
        is_void = np.array([query in void for query in self._queries], np.bool_)
        legs = np.flatnonzero(is_void[self._hop.leg_query])
        bits = np.uint64(1) << self._hop.arrays.leg_bit[legs]
        np.bitwise_or.at(self.masks, self._hop.leg_node[legs], bits)
        return True

    def take_from(self, pairs: HopPairs) -> None:
        """They want none of these pairs."""
        if self.look():
            pairs.word &= ~self.masks[pairs.node]
