from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dovetail.core.errors import SessionError
from dovetail.kernels.match.hash_keys import group_of_codes, hash_keys
from dovetail.plan.placement import Placement
from dovetail.plan.routing import HASH, RANDOM, Routing
from dovetail.runtime.probe.rows_in_flight import RowsInFlight, concat_rows, pack_rows, spread_by_index, unpack_rows

MEMBERS = 2


def rows_of(count: int, node: int = 0) -> RowsInFlight:
    codes = hash_keys([pa.array(range(count), pa.int64())]).codes
    numbers = np.arange(count, dtype=np.uint64)
    refs = np.stack([numbers + np.uint64(1000 * member) for member in range(MEMBERS)])
    return RowsInFlight(np.full(count, node), codes, numbers | np.uint64(1 << 63), refs)


def as_tuples(rows: RowsInFlight) -> list[tuple[int, ...]]:
    columns = (rows.nodes, rows.codes, rows.words, *rows.refs)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("owners", [(0, 0), (0, 1), (1, 0, 2, 1)])
def test_every_row_goes_to_the_owner_of_its_key_group_once(owners: tuple[int, ...]) -> None:
    placement = Placement(owners, 4)
    sent = concat_rows([rows_of(50, node=3), rows_of(20, node=1)])
    got: list[tuple[int, ...]] = []
    for partition, own in spread_by_index(sent, np.zeros(len(sent), np.int64), [(HASH, placement)]):
        assert {owners[group] for group in group_of_codes(own.codes, placement.group_count)} == {partition}
        got += as_tuples(own)
    assert sorted(got) == as_tuples(sent)


def test_each_row_goes_by_the_routing_of_its_own_index() -> None:
    placement = Placement((0, 1), 2)
    sent = concat_rows([rows_of(30, node=0), rows_of(30, node=1)])
    routed: list[tuple[Routing, Placement]] = [(HASH, placement), (RANDOM, placement)]
    got = [(partition, each) for partition, own in spread_by_index(sent, sent.nodes, routed) for each in as_tuples(own)]
    assert len(got) == 30 + 2 * 30, "random routing sends a row to all partitions"
    assert len(set(got)) == len(got)


def test_what_travels_arrives_as_it_was() -> None:
    sent = rows_of(7, node=5)
    got = unpack_rows(pack_rows(sent, epoch=4), epoch=4)
    assert as_tuples(got) == as_tuples(sent)
    assert as_tuples(unpack_rows(pack_rows(rows_of(0), 4), 4)) == []


def test_rows_of_another_plan_are_refused() -> None:
    with pytest.raises(SessionError, match="epoch 3 came to a task of epoch 4"):
        unpack_rows(pack_rows(rows_of(2), epoch=3), epoch=4)
