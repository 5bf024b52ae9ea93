"""Key groups sampled where rows are stored arrive in the statistics, as a plain model of the rows has them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from dovetail.engine.control.registry import QueryState
from dovetail.kernels.match.hash_keys import group_of_codes, hash_keys
from dovetail.stats.key_group_sample import NO_GROUP, SAMPLED_ROWS_A_BATCH

if TYPE_CHECKING:
    from conftest import Bench, Row

GROUPS = 8


def group_of(value: int | None) -> int:
    if value is None:
        return NO_GROUP
    codes = hash_keys([pa.array([value], pa.int32())]).codes
    return int(group_of_codes(codes, GROUPS)[0])


@pytest.mark.parametrize("splits", [1, 3])
def test_a_small_batch_is_its_own_sample(bench: Bench, splits: int) -> None:
    session = bench.open(placement="shared", key_groups=GROUPS)
    session.create_query("SELECT a.v FROM a JOIN b ON a.k = b.k WHERE a.v > 3", "by_k")
    session.create_query("SELECT a.v FROM a JOIN b ON a.v = b.v WHERE a.v > 1", "by_v")
    rows: list[Row] = [(None if n % 7 == 0 else n % 5, n % 9, n * 0.01) for n in range(60)]
    bench.push(session, a=rows, b=rows[:3], splits=splits)
    sample = session.engine.head.statistics.observed.key_groups["a"]
    cells = sample.cells(("[k]", "[v]"))
    assert cells is not None
    found = dict(zip(map(tuple, cells.groups.T.tolist()), cells.rows.tolist(), strict=True))
    # What somebody wants is kept, and an index has all that is kept.
    expected = Counter((group_of(k), group_of(v)) for k, v, _ in rows if v is not None and v > 1)
    assert found == pytest.approx(dict(expected))


def test_a_large_batch_is_sampled_in_proportion(bench: Bench) -> None:
    session = bench.open(placement="shared", key_groups=GROUPS)
    session.create_query("SELECT a.v FROM a JOIN b ON a.k = b.k", "q")
    rows: list[Row] = [(1 if n < 6000 else 2, 0, n * 0.001) for n in range(8000)]
    bench.push(session, a=rows, b=[(1, 1, 0.0)], splits=4)
    (seen,) = session.engine.head.statistics.observed.key_groups["a"].batches
    assert seen.rows == 8000
    assert seen.groups.shape == (1, SAMPLED_ROWS_A_BATCH)
    assert np.mean(seen.groups == group_of(1)) == pytest.approx(0.75, abs=0.02)


def test_indexes_of_one_key_are_one_use(bench: Bench) -> None:
    session = bench.open(placement="shared", key_groups=GROUPS)
    session.create_query("SELECT a.v FROM a JOIN b ON a.k = b.k WHERE a.v > 3", "plain")
    session.create_query("SELECT a.v FROM a JOIN b ON a.k = b.k AND a.v < b.v", "range")
    session.create_query("SELECT a.v FROM a JOIN b ON a.v < b.v", "keyless")
    session.create_query("SELECT a.v FROM a JOIN b ON a.k = b.v", "crossed")
    bench.push(session, a=[(1, 1, 0.0)], b=[(2, 2, 0.0), (3, None, 0.1)])
    samples = session.engine.head.statistics.observed.key_groups
    (of_a,), (of_b,) = samples["a"].batches, samples["b"].batches
    assert (of_a.uses, sorted(of_b.uses)) == (("[k]",), ["[k]", "[v]"])
    # The index by k in order of v lacks the second row, the one by k alone has it.
    assert of_b.of_uses(["[k]"]).tolist() == [[group_of(2), group_of(3)]]  # type: ignore[union-attr]
    assert of_b.of_uses(["[v]"]).tolist() == [[group_of(2), NO_GROUP]]  # type: ignore[union-attr]


@pytest.mark.parametrize("exchange", ["references", "rows"])
def test_it_is_the_same_whatever_travels(bench: Bench, exchange: str) -> None:
    session = bench.open(placement="shared", key_groups=GROUPS, exchange=exchange, partitions=3)
    session.create_query("SELECT a.v FROM a JOIN b ON a.k = b.k", "by_k")
    session.create_query("SELECT a.v FROM a JOIN b ON a.v = b.v", "by_v")
    rows: list[Row] = [(n % 5, n % 9, n * 0.01) for n in range(60)]
    bench.push(session, a=rows, b=rows[:3], splits=2)
    (seen,) = session.engine.head.statistics.observed.key_groups["a"].batches
    found = Counter(zip(*(seen.of_uses([use])[0].tolist() for use in ("[k]", "[v]")), strict=True))  # type: ignore[index]
    assert found == Counter((group_of(k), group_of(v)) for k, v, _ in rows)


def test_a_guarded_key_is_sampled_where_it_can_be_computed(bench: Bench) -> None:
    session = bench.open(placement="shared", key_groups=GROUPS)
    guarded = session.create_query("SELECT a.v FROM a JOIN b ON 10 / a.k = b.v WHERE a.k > 0", "guarded")
    failing = session.create_query("SELECT a.v FROM a JOIN b ON 10 / a.v = b.v", "failing")
    session.create_query("SELECT a.v FROM a JOIN b ON a.v = b.k", "plain")
    bench.push(session, a=[(0, 1, 0.0), (5, 0, 0.1)], b=[(1, 2, 0.0)])
    assert (guarded.status.state, failing.status.state) == (QueryState.RUNNING, QueryState.QUARANTINED)
    (seen,) = session.engine.head.statistics.observed.key_groups["a"].batches
    by_use = dict(zip(seen.uses, seen.groups.tolist(), strict=True))
    (by_k,) = (groups for use, groups in by_use.items() if "row.k" in use)
    (by_v,) = (groups for use, groups in by_use.items() if "row.v" in use)
    assert by_k[0] == NO_GROUP
    assert by_k[1] != NO_GROUP
    assert by_use["[v]"] == [group_of(1), group_of(0)]
    assert by_v == [NO_GROUP, NO_GROUP]
