"""What becomes of pairs, beside plain loops over pairs, nodes and bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.addresses import address_of
from dovetail.kernels.gather_rows import ABSENT
from dovetail.kernels.match.hand_on import (
    HAS_CODE,
    NO_KEY,
    NOT_KNOWN,
    count_children,
    count_legs,
    fork_pairs,
    load_codes,
    pairs_by_leg,
    sort_by_node,
)

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
NODES, BITS = 3, (0, 5, 63)


class Children(NamedTuple):
    """What a hop's arrays tell of the nodes that follow."""

    child_begin: I64
    child_mask: U64
    child: I64


def leg_of_bit() -> I64:
    legs = np.full((NODES, 64), -1, np.int64)
    for node in range(NODES):
        for place, bit in enumerate(BITS):
            legs[node, bit] = node * len(BITS) + place
    return legs


LEGS = NODES * len(BITS)
WORD = st.sets(st.sampled_from(BITS)).map(lambda bits: sum(1 << bit for bit in bits))
PAIRS = st.lists(st.tuples(WORD, st.integers(0, NODES - 1)), max_size=40)


def columns(pairs: list[tuple[int, int]]) -> tuple[U64, I64]:
    return np.array([word for word, _ in pairs], np.uint64), np.array([node for _, node in pairs], np.int64)


def legs_of(word: int, node: int) -> list[int]:
    return [int(leg_of_bit()[node, bit]) for bit in BITS if word >> bit & 1]


@given(PAIRS)
def test_a_leg_counts_the_pairs_that_it_wants(pairs: list[tuple[int, int]]) -> None:
    counts = count_legs(*columns(pairs), leg_of_bit(), LEGS)
    assert counts.tolist() == [sum(leg in legs_of(*pair) for pair in pairs) for leg in range(LEGS)]


@given(PAIRS, st.lists(WORD, min_size=NODES, max_size=NODES))
def test_legs_get_their_pairs_in_order_and_those_outside_the_mask_none(
    pairs: list[tuple[int, int]], masks: list[int]
) -> None:
    found, ends = pairs_by_leg(*columns(pairs), np.array(masks, np.uint64), leg_of_bit(), LEGS)
    begins = [0, *ends.tolist()]
    for leg in range(LEGS):
        wanted = [i for i, (word, node) in enumerate(pairs) if leg in legs_of(word & masks[node], node)]
        assert found[begins[leg] : begins[leg + 1]].tolist() == wanted
    assert len(found) == begins[-1]


@given(PAIRS, st.lists(st.lists(WORD, max_size=3), min_size=NODES, max_size=NODES))
def test_pairs_go_on_to_every_child_that_a_leg_of_theirs_goes_to(
    pairs: list[tuple[int, int]], masks: list[list[int]]
) -> None:
    children = [(node, mask) for node in range(NODES) for mask in masks[node]]
    nodes = Children(
        np.cumsum([0, *map(len, masks)]),
        np.array([mask for _, mask in children], np.uint64),
        np.arange(len(children))[::-1].copy(),
    )
    expected = [
        (int(nodes.child[each]), word & mask, i)
        for i, (word, node) in enumerate(pairs)
        for each, (parent, mask) in enumerate(children)
        if parent == node and word & mask
    ]
    words, node_of_pair = columns(pairs)
    count = int(count_children(words, node_of_pair, nodes))
    assert count == len(expected)
    # More room than is needed: what is written beyond shows here, not in somebody else's memory.
    room = len(pairs) * len(children)
    to, child_words, idx = np.full(room, -1), np.zeros(room, np.uint64), np.full(room, -1)
    fork_pairs(words, node_of_pair, nodes, to, child_words, idx)
    assert list(zip(to.tolist(), child_words.tolist(), idx.tolist(), strict=True))[:count] == expected
    assert (to[count:] == -1).all()


def test_codes_are_loaded_where_they_are_stored_and_not_null() -> None:
    """Node 0: column 0 of member 1; node 1: column 1 of member 0; node 2 has a key that is computed."""
    codes = [[np.array([10, 11], np.uint64), np.array([12], np.uint64)], [np.array([20, 21], np.uint64)] * 2]
    valid = np.array([1, 0], np.uint8)
    code_addresses = np.array([[address_of(each) for each in column] for column in codes], np.uint64)
    valid_addresses = np.array([[0, 0], [0, address_of(valid)]], np.uint64)
    second = 1 << 32
    rows = [
        (0, (0, 1), 11, HAS_CODE),
        (0, (0, second), 12, HAS_CODE),
        (0, (0, int(ABSENT)), 0, NO_KEY),
        (1, (1, 0), 21, HAS_CODE),
        (1, (second, 0), 20, HAS_CODE),
        (1, (second | 1, 0), 0, NO_KEY),
        (2, (0, 0), 0, NOT_KNOWN),
    ]
    refs = np.array([row[1] for row in rows], np.uint64).T.copy()
    found, is_known = np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint8)
    nodes = np.array([row[0] for row in rows])
    load_codes(nodes, refs, np.array([1, 0, 0]), np.array([0, 1, -1]), code_addresses, valid_addresses, found, is_known)
    assert found.tolist() == [row[2] for row in rows]
    assert is_known.tolist() == [row[3] for row in rows]


@given(st.lists(st.integers(0, NODES - 1), max_size=40))
def test_rows_are_sorted_by_node_and_keep_their_order_there(nodes: list[int]) -> None:
    order, ends = sort_by_node(np.array(nodes, np.int64), NODES)
    assert order.tolist() == sorted(range(len(nodes)), key=lambda i: nodes[i])
    assert ends.tolist() == [sum(node <= last for node in nodes) for last in range(NODES)]
