from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dovetail.kernels.match.hash_keys import group_of_codes, hash_keys
from dovetail.plan.placement import Placement
from dovetail.plan.routing import HASH
from dovetail.runtime.probe.frame import Frame
from dovetail.runtime.probe.partial import Partial, pack_partials, receive_partials, spread_partial

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
    parts = [part for partial in sent for part in spread_partial(partial, HASH, placement)]
    got: dict[str, list[tuple[int, ...]]] = {"n": [], "m": []}
    for target in range(placement.partition_count):
        payloads = [pack_partials([part]) for partition, part in parts if partition == target]
        for partial in receive_partials(payloads, lambda _node: STORES):
            groups = group_of_codes(partial.codes, placement.group_count)
            assert {owners[group] for group in groups} == {target}
            got[partial.node] += rows_of(partial)
    for partial in sent:
        assert len(got[partial.node]) == len(partial.codes)
        assert set(got[partial.node]) == rows_of(partial)


def test_what_several_senders_sent_for_a_node_comes_as_one_sorted_by_code() -> None:
    payloads = [pack_partials([partial_of("n", 30)]) for _ in range(3)]
    (partial,) = receive_partials(payloads, lambda _node: STORES)
    assert len(partial.codes) == 90
    assert (partial.codes[1:] >= partial.codes[:-1]).all()
    assert partial.frame.stores == STORES


@pytest.mark.parametrize("partitions", [1, 2])
def test_nobody_gets_nothing(partitions: int) -> None:
    placement = Placement((0, partitions - 1), partitions)
    assert list(spread_partial(partial_of("n", 0), HASH, placement)) == []
    assert len(list(spread_partial(partial_of("n", 1), HASH, placement))) == 1


def test_nodes_with_other_numbers_of_members_and_legs_travel_in_one_message() -> None:
    narrow = Partial(
        "x \u2603",
        np.arange(3, dtype=np.uint64),
        Frame(("a",), (np.arange(3, dtype=np.uint64),)),
        np.ones((3, 3), np.uint64),
    )
    stores = {"n": STORES, narrow.node: ("a",)}
    got = receive_partials([pack_partials([partial_of("n", 7, words=1), narrow])], stores.__getitem__)
    assert [(partial.node, partial.frame.stores, partial.bits.shape) for partial in got] == [
        ("n", STORES, (1, 7)),
        (narrow.node, ("a",), (3, 3)),
    ]
    assert rows_of(got[1]) == rows_of(narrow)
