"""Joins that no query asks for, estimated by hop tasks, against a plain model of the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.plan.sampled_join import SampledJoin
from dovetail.plan.store_plan import ROW, IndexPlan
from dovetail.query.expression import Call, Column
from dovetail.query.types import INT
from dovetail.stats.catalog import edge_text
from dovetail.stats.estimate import Estimate, Origin
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int32()), ("v", pa.int32()), ("ts", pa.timestamp("us", tz="UTC"))])
K, V = IndexPlan((Column(ROW, "k", INT),)), IndexPlan((Column(ROW, "v", INT),))
EDGE = edge_text("a.v", "b.v")
ON_V = SampledJoin(EDGE, "a", V, "b", V)

Row = tuple[int, int | None, int]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[LocalSession]:
    session = LocalSession(tmp_path)
    for name in "ab":
        session.create_stream(name, SCHEMA, event_time="ts")
    session.create_query("SELECT a.v, b.v FROM a JOIN b ON a.k = b.k", "q")
    yield session
    session.close()


def push(session: LocalSession, a: list[Row], b: list[Row]) -> None:
    tables = {}
    for name, rows in (("a", a), ("b", b)):
        columns = [[row[place] for row in rows] for place in range(3)]
        arrays = [pa.array(own, field.type) for own, field in zip(columns, SCHEMA, strict=True)]
        tables[name] = pa.Table.from_arrays(arrays, schema=SCHEMA)
    session.push(tables, splits=2)


def random_rows(chance: random.Random, count: int, begin_us: int = 0) -> list[Row]:
    """Every tenth `v` is NULL; `k` differs in all rows."""
    return [
        (
            chance.getrandbits(30),
            None if chance.random() < 0.1 else chance.randrange(50),
            begin_us + chance.randrange(1000),
        )
        for _ in range(count)
    ]


def test_a_join_of_small_stores_is_counted_over_all_live_rows(session: LocalSession) -> None:
    chance = random.Random(2)
    session.engine.batches.sample_joins((ON_V,))
    a, b = [], []
    matches, pairs = 0, 0
    for batch in range(2):
        new_a, new_b = random_rows(chance, 300, 1000 * batch), random_rows(chance, 200, 1000 * batch)
        push(session, new_a, new_b)
        a += new_a
        b += new_b
        matches += sum(x[1] is not None and x[1] == y[1] for x in a for y in b)
        pairs += len(a) * len(b)
    assert session.engine.head.statistics.match(EDGE) == Estimate(matches / pairs, Origin.EXACT)


def test_time_bounds_count_only_pairs_within_them(session: LocalSession) -> None:
    chance = random.Random(3)
    session.engine.batches.sample_joins((SampledJoin(EDGE, "a", V, "b", V, -100, 200),))
    a, b = random_rows(chance, 400), random_rows(chance, 300)
    push(session, a, b)
    near = [(x, y) for x in a for y in b if -100 <= y[2] - x[2] <= 200]
    matches = sum(x[1] is not None and x[1] == y[1] for x, y in near)
    assert session.engine.head.statistics.match(EDGE).value == pytest.approx(matches / len(near), rel=0.2)


def test_a_large_join_is_estimated_within_its_error(session: LocalSession) -> None:
    chance = random.Random(4)
    session.engine.batches.sample_joins((SampledJoin(EDGE, "a", K, "b", V), ON_V))
    rows: list[Row] = [(chance.randrange(9000), chance.randrange(9000), i) for i in range(20_000)]
    push(session, rows, rows[:100])
    found = session.engine.head.statistics.match(EDGE)
    assert found.origin is Origin.ESTIMATED
    assert found.value == pytest.approx(1 / 9000, rel=0.3)


def test_a_join_whose_key_fails_has_no_answer_and_harms_nobody(session: LocalSession) -> None:
    failing = IndexPlan((Call("div", (Column(ROW, "v", INT), Column(ROW, "v", INT)), INT),))
    session.engine.batches.sample_joins(
        (SampledJoin(EDGE, "a", failing, "b", V), SampledJoin("x", "a", K, "nobody", V))
    )
    push(session, [(1, 0, 0)], [(1, 0, 0)])
    assert session.engine.head.statistics.match(EDGE).origin is Origin.ASSUMED
    assert session.results("q").num_rows == 1


@pytest.mark.parametrize(
    ("b_index", "bounds", "message"),
    [(IndexPlan((*V.keys, *K.keys)), (None, None), "equally many keys"), (V, (2, 1), "no times lie between")],
)
def test_a_join_that_makes_no_sense_is_refused(
    b_index: IndexPlan, bounds: tuple[int | None, int | None], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        SampledJoin(EDGE, "a", V, "b", b_index, *bounds)
