"""What becomes of the pairs of a hop: counted by leg, given to the answers they are, and sent on to the next nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.gather_rows import ABSENT
from dovetail.kernels.pointers import load8, load64, trailing_zeros

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


def count_legs(words: U64, node_of_pair: I64, leg_of_bit: I64, leg_count: int) -> I64:
    """For each leg of a hop how many pairs it wants."""
    counts = np.zeros(leg_count, np.int64)
    _count_legs(words, node_of_pair, leg_of_bit, counts)
    return counts


@njit(cache=True)
def _count_legs(words: Any, node_of_pair: Any, leg_of_bit: Any, counts: Any) -> None:
    for i in range(len(words)):
        left = words[i]
        node = np.uint64(node_of_pair[i])
        while left:
            counts[np.uint64(leg_of_bit[node, trailing_zeros(left)])] += 1
            left &= left - np.uint64(1)


def pairs_by_leg(words: U64, node_of_pair: I64, masks: U64, leg_of_bit: I64, leg_count: int) -> tuple[I64, I64]:
    """The pairs of those legs that are in `masks[node]`, leg by leg, and where those of each leg end."""
    counts = np.zeros(leg_count, np.int64)
    masked = words & masks[node_of_pair]
    _count_legs(masked, node_of_pair, leg_of_bit, counts)
    ends = np.cumsum(counts)
    pairs = np.empty(int(ends[-1]) if leg_count else 0, np.int64)
    _place_pairs(masked, node_of_pair, leg_of_bit, ends - counts, pairs)
    return pairs, ends


@njit(cache=True)
def _place_pairs(words: Any, node_of_pair: Any, leg_of_bit: Any, next_place: Any, pairs: Any) -> None:
    for i in range(len(words)):
        left = words[i]
        node = np.uint64(node_of_pair[i])
        while left:
            leg = np.uint64(leg_of_bit[node, trailing_zeros(left)])
            pairs[np.uint64(next_place[leg])] = i
            next_place[leg] += 1
            left &= left - np.uint64(1)


@njit(cache=True)
def count_children(words: Any, node_of_pair: Any, nodes: Any) -> Any:
    """How many rows go on to the nodes of the next hop."""
    count = 0
    for i in range(len(words)):
        node = np.uint64(node_of_pair[i])
        for child in range(nodes.child_begin[node], nodes.child_begin[node + np.uint64(1)]):
            count += (words[i] & nodes.child_mask[child]) != np.uint64(0)
    return count


@njit(cache=True)
def fork_pairs(words: Any, node_of_pair: Any, nodes: Any, children: Any, child_words: Any, pairs: Any) -> None:
    """The nodes that pairs go on to, the legs that want them there, and the pairs."""
    count = np.uint64(0)
    for i in range(len(words)):
        node = np.uint64(node_of_pair[i])
        for child in range(nodes.child_begin[node], nodes.child_begin[node + np.uint64(1)]):
            word = words[i] & nodes.child_mask[child]
            if word != np.uint64(0):
                children[count] = nodes.child[child]
                child_words[count] = word
                pairs[count] = i
                count += np.uint64(1)


NOT_KNOWN, NO_KEY, HAS_CODE = 0, 1, 2


@njit(cache=True)
def load_codes(
    children: Any, refs: Any, key_member: Any, key_codes: Any, code_addresses: Any, valid_addresses: Any,
    codes: Any, is_known: Any,
) -> None:  # fmt: skip
    """The codes of rows where their key is a column of a member; `is_known` says whether it is, or has a NULL."""
    for i in range(len(children)):
        child = np.uint64(children[i])
        is_known[i] = NOT_KNOWN
        codes[i] = np.uint64(0)
        if key_codes[child] >= 0:
            column = np.uint64(key_codes[child])
            ref = refs[np.uint64(key_member[child]), i]
            is_known[i] = NO_KEY
            if ref != ABSENT:
                bucket, row = ref >> np.uint64(32), ref & np.uint64(0xFFFFFFFF)
                valid = valid_addresses[column, bucket]
                if valid == np.uint64(0) or load8(valid + row) != np.uint8(0):
                    codes[i] = load64(code_addresses[column, bucket] + row * np.uint64(8))
                    is_known[i] = HAS_CODE


@njit(cache=True)
def sort_by_node(nodes: Any, node_count: Any) -> Any:
    """An order in which rows are at node after node, and where those of each node end."""
    ends = np.zeros(node_count, np.int64)
    for i in range(len(nodes)):
        ends[np.uint64(nodes[i])] += 1
    total = 0
    next_place = np.empty(node_count, np.int64)
    for node in range(node_count):
        next_place[node] = total
        total += ends[node]
        ends[node] = total
    order = np.empty(len(nodes), np.int64)
    for i in range(len(nodes)):
        own = np.uint64(nodes[i])
        order[np.uint64(next_place[own])] = i
        next_place[own] += 1
    return order, ends
