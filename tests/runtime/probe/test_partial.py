from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dovetail.kernels.match.hash_keys import group_of_codes, hash_keys
from dovetail.plan.placement import Placement
from dovetail.plan.routing import HASH
from dovetail.runtime.message import Kind
from dovetail.runtime.probe.frame import Frame
from dovetail.runtime.probe.partial import Partial, receive_partials, send_partial

STORES = ("a", "b")


def partial_of(node: str, count: int, words: int = 2) -> Partial:
    codes = hash_keys([pa.array(range(count), pa.int64())]).codes
    numbers = np.arange(count, dtype=np.uint64)
    refs = tuple(numbers + np.uint64(1000 * member) for member in range(len(STORES)))
    return Partial(node, codes, Frame(STORES, refs), np.stack([numbers << np.uint64(word) for word in range(words)]))


def rows_of(partial: Partial) -> set[tuple[int, ...]]:
    columns = (partial.codes, *partial.frame.refs, *partial.bits)
    return set(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("owners", [(0, 0), (0, 1), (1, 0, 2, 1)])
def test_every_row_goes_to_the_owner_of_its_key_group_once(owners: tuple[int, ...]) -> None:
    placement = Placement(owners, 4)
    sent = [partial_of("n", 50), partial_of("m", 20)]
    messages = [message for partial in sent for message in send_partial(partial, HASH, placement)]
    assert {message.kind for message in messages} == {Kind.PARTIAL}
    got: dict[str, list[tuple[int, ...]]] = {"n": [], "m": []}
    for target in range(placement.partition_count):
        payloads = [message.payload for message in messages if message.target == target]
        for partial in receive_partials(payloads, {"n": STORES, "m": STORES}):
            groups = group_of_codes(partial.codes, placement.group_count)
            assert {owners[group] for group in groups} == {target}
            got[partial.node] += rows_of(partial)
    for partial in sent:
        assert len(got[partial.node]) == len(partial.codes)
        assert set(got[partial.node]) == rows_of(partial)


def test_what_several_senders_sent_for_a_node_comes_as_one_sorted_by_code() -> None:
    payloads = [
        message.payload for _ in range(3) for message in send_partial(partial_of("n", 30), HASH, Placement((0, 0), 1))
    ]
    (partial,) = receive_partials(payloads, {"n": STORES})
    assert len(partial.codes) == 90
    assert (partial.codes[1:] >= partial.codes[:-1]).all()
    assert partial.frame.stores == STORES


def test_nobody_gets_an_empty_message() -> None:
    assert list(send_partial(partial_of("n", 0), HASH, Placement((0, 1), 2))) == []
    assert len(list(send_partial(partial_of("n", 1), HASH, Placement((0, 1), 2)))) == 1
