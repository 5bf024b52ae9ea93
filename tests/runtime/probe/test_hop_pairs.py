from __future__ import annotations

import numpy as np
import pytest

from dovetail.kernels.match.match_hop import FoundPairs
from dovetail.lowering.lower_plan import flat_plan
from dovetail.runtime.probe.hop_pairs import HopPairs, VoidLegs, pairs_in_pieces
from dovetail.runtime.probe.rows_in_flight import RowsInFlight
from dovetail.runtime.report import TaskReport
from tests.support.generators.small_plan import plan_of

EVERY_LEG = np.uint64((1 << 64) - 1)


def rows_at(nodes: list[int]) -> RowsInFlight:
    count = len(nodes)
    return RowsInFlight(
        np.array(nodes), np.zeros(count, np.uint64), np.full(count, EVERY_LEG), np.zeros((1, count), np.uint64)
    )


def found(rows: list[int]) -> FoundPairs:
    count = len(rows)
    return FoundPairs(np.array(rows, np.uint32), np.arange(count, dtype=np.uint64), np.full(count, EVERY_LEG))


def pairs_at(nodes: list[int]) -> HopPairs:
    (pairs,) = pairs_in_pieces(rows_at(nodes), found(list(range(len(nodes)))), None)
    return pairs


def test_a_query_that_becomes_void_wants_no_pair_any_more_and_the_others_want_theirs() -> None:
    """Of 65 queries the last has a word of its own."""
    flat, report = flat_plan(plan_of(65)), TaskReport()
    hop = flat.hops[0]
    (first, second) = (node.number for node in hop.nodes)
    void = VoidLegs(flat, hop, report)
    pairs = pairs_at([first, second, first])
    void.take_from(pairs)
    assert pairs.word.tolist() == [EVERY_LEG] * 3
    bits = {leg.leg.query: (node.number, leg.bit) for node in hop.nodes for leg in node.legs}
    gone = ["q3", next(query for query, (node, _) in bits.items() if node == second)]
    for count, query in enumerate(gone, 1):
        report.fail({query}, ValueError("bad row"))
        pairs = pairs_at([first, second, first])
        void.take_from(pairs)
        lost = {node: sum(1 << bits[q][1] for q in gone[:count] if bits[q][0] == node) for node in (first, second)}
        assert [~int(word) & int(EVERY_LEG) for word in pairs.word] == [lost[first], lost[second], lost[first]]


def test_nothing_is_looked_at_twice() -> None:
    flat, report = flat_plan(plan_of(2)), TaskReport()
    void = VoidLegs(flat, flat.hops[0], report)
    assert not void.look()
    report.fail({"q1"}, ValueError("bad row"))
    assert void.look()
    assert not void.look()


@pytest.mark.parametrize(("size", "pieces"), [(None, [5]), (2, [2, 2, 1]), (5, [5]), (9, [5])])
def test_pieces_hold_all_pairs_once(size: int | None, pieces: list[int]) -> None:
    rows = rows_at([2, 0, 1])
    cut = list(pairs_in_pieces(rows, found([0, 0, 1, 2, 2]), size))
    assert [len(piece) for piece in cut] == pieces
    assert np.concatenate([piece.ref for piece in cut]).tolist() == [0, 1, 2, 3, 4]
    assert np.concatenate([piece.node for piece in cut]).tolist() == [2, 2, 0, 1, 1]


def test_without_pairs_there_is_one_empty_piece() -> None:
    """So that whoever takes pieces sees that time went by."""
    assert [len(piece) for piece in pairs_in_pieces(rows_at([0]), found([]), 3)] == [0]
