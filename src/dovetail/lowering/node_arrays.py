"""The nodes of a hop as arrays: what is of one node lies at its number, and lists of it one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dovetail.kernels.match.match_hop import NodeArrays
from dovetail.kernels.match.special_values import NO_LOWER, NO_UPPER
from dovetail.kernels.word_bits import WORD_BITS
from dovetail.lowering.flat_plan import NONE, FlatNode
from dovetail.plan.probe_tree import MemberBound
from dovetail.plan.visibility import Visibility

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
NEVER = np.iinfo(np.int64).max
"""A batch that never comes."""


def node_arrays(
    nodes: Sequence[FlatNode], store_number: Mapping[str, int], complete_from: Mapping[str, int]
) -> NodeArrays:
    legs = [leg for node in nodes for leg in node.legs]
    leg_of_bit = np.full((len(nodes), WORD_BITS), NONE, np.int64)
    place = 0
    for node in nodes:
        for leg in node.legs:
            leg_of_bit[node.number, leg.bit] = place
            place += 1
    bounds = _BoundLists()
    for node in nodes:
        bounds.add(node)
    steps = [node.node.step for node in nodes]
    return NodeArrays(
        target=_ints(store_number[step.target] for step in steps),
        up_to_now=np.array([step.visibility is Visibility.UP_TO_NOW for step in steps], np.bool_),
        before_batch=_ints(NEVER if step.before_batch is None else step.before_batch for step in steps),
        first_batch=_ints(min(complete_from[leg.leg.query] for leg in node.legs) for node in nodes),
        path=np.array([[store_number[store] for store in node.stores] for node in nodes], np.int64),
        leg_begin=_begins(len(node.legs) for node in nodes),
        leg_bit=_words(leg.bit for leg in legs),
        leg_ask=_ints(leg.ask for leg in legs),
        leg_start_ask=_ints(leg.start_ask for leg in legs),
        leg_of_bit=leg_of_bit,
        emit_mask=_words(sum(1 << leg.bit for leg in node.legs if leg.emit is not None) for node in nodes),
        child_begin=_begins(len(node.children) for node in nodes),
        child_mask=_words(mask for node in nodes for mask, _ in node.children),
        child=_ints(child for node in nodes for _, child in node.children),
        key_member=_ints(node.key_member for node in nodes),
        key_codes=_ints(node.key_codes for node in nodes),
        **bounds.arrays(),
    )


Term = tuple[int, int, int]
"""A member, and the accepted range of the stored time minus its time."""


def bound_terms(bounds: tuple[MemberBound, ...], member: int) -> tuple[Term, ...]:
    """What a leg asks of the time of the stored row, which becomes `member`."""
    found: dict[int, tuple[int, int]] = {}
    for bound in bounds:
        other = bound.earlier + bound.later - member
        lower, upper = found.get(other, (NO_LOWER, NO_UPPER))
        found[other] = (lower, bound.upper_us) if bound.later == member else (-bound.upper_us, upper)
    return tuple((other, lower, upper) for other, (lower, upper) in sorted(found.items()))


class _BoundLists:
    def __init__(self) -> None:
        self._class_counts: list[int] = []
        self._masks: list[int] = []
        self._term_counts: list[int] = []
        self._terms: list[Term] = []
        self._loose_counts: list[int] = []
        self._loose: list[Term] = []

    def add(self, node: FlatNode) -> None:
        mask_by_terms: dict[tuple[Term, ...], int] = {}
        for leg in node.legs:
            terms = bound_terms(leg.leg.bounds, node.node.member)
            mask_by_terms[terms] = mask_by_terms.get(terms, 0) | 1 << leg.bit
        self._class_counts.append(len(mask_by_terms))
        self._masks += mask_by_terms.values()
        for terms in mask_by_terms:
            self._term_counts.append(len(terms))
            self._terms += terms
        loose = list(_loosest(list(mask_by_terms)))
        self._loose_counts.append(len(loose))
        self._loose += loose

    def arrays(self) -> dict[str, Any]:
        return {
            "class_begin": _begins(self._class_counts),
            "class_mask": _words(self._masks),
            "term_begin": _begins(self._term_counts),
            "term_member": _ints(term[0] for term in self._terms),
            "term_lower": _ints(term[1] for term in self._terms),
            "term_upper": _ints(term[2] for term in self._terms),
            "loose_begin": _begins(self._loose_counts),
            "loose_member": _ints(term[0] for term in self._loose),
            "loose_lower": _ints(term[1] for term in self._loose),
            "loose_upper": _ints(term[2] for term in self._loose),
        }


def _loosest(classes: list[tuple[Term, ...]]) -> Iterator[Term]:
    """By member the range that some class accepts; nothing of a member that one of them does not ask about."""
    by_class = [{member: (lower, upper) for member, lower, upper in terms} for terms in classes]
    for member in sorted(set.intersection(*(set(each) for each in by_class))):
        yield member, min(each[member][0] for each in by_class), max(each[member][1] for each in by_class)


def _ints(values: Any) -> I64:
    return np.array(list(values), np.int64)


def _words(values: Any) -> U64:
    return np.array(list(values), np.uint64)


def _begins(counts: Any) -> I64:
    """Where the lists of all begin, one after the other, and where the last ends."""
    begins: I64 = np.cumsum([0, *counts]).astype(np.int64)
    return begins
