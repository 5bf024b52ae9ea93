"""Figures that the engine folds from its batches, against a plain model of the same rows."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.engine.observe import attempted, observe_batch
from dovetail.engine.observe.time_spread import EVEN_TIMES_ERROR, TimeSpread, visible_rows
from dovetail.kernels.match.hash_keys import group_of_codes, hash_keys
from dovetail.plan.store_plan import ROW
from dovetail.query.expression import Call, Column, Literal
from dovetail.query.types import BOOLEAN, INT
from dovetail.stats.catalog import StatsCatalog, edge_text
from dovetail.stats.estimate import Estimate, Origin
from dovetail.store.bucket_file import BucketMeta
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench, Row

import pyarrow as pa

OVER_3 = Call("gt", (Column(ROW, "v", INT), Literal(3, INT)), BOOLEAN)
JOIN = "SELECT a.v FROM a JOIN b ON a.k = b.k"
SELECTIVE = "SELECT a.v FROM a JOIN b ON a.k = b.k WHERE a.v > 3 AND b.v > 7"
EDGE = edge_text("a.k", "b.k")


def random_rows(chance: random.Random, count: int, *, since_s: float = 0.0, keys: int = 20) -> list[Row]:
    return [
        (
            None if chance.random() < 0.1 else chance.randrange(keys),
            chance.randrange(10),
            since_s + chance.random() * 10,
        )
        for _ in range(count)
    ]


def pairs_of(a: list[Row], b: list[Row]) -> int:
    a_keys, b_keys = Counter(row[0] for row in a), Counter(row[0] for row in b)
    return sum(count * b_keys[key] for key, count in a_keys.items() if key is not None)


def statistics(session: LocalSession) -> StatsCatalog:
    return session.engine.head.statistics


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_one_batchs_figures_are_those_of_a_plain_model(bench: Bench, seed: int, splits: int) -> None:
    chance = random.Random(seed)
    a, b = random_rows(chance, 200), random_rows(chance, 100)
    session = bench.open()
    session.create_query(JOIN, "all")
    session.create_query(SELECTIVE, "some")
    bench.push(session, a=a, b=b, splits=splits)
    stats = statistics(session)
    assert stats.batch_rows("a") == stats.rows("a") == stats.stored_rows("a") == Estimate(200.0, Origin.EXACT)
    passing = sum(row[1] is not None and row[1] > 3 for row in a) / 200
    assert stats.selection(OVER_3, "a") == Estimate(passing, Origin.EXACT)
    rate = stats.rows_per_s("a")
    assert rate is not None
    times = [row[2] for row in a]
    assert rate.value == pytest.approx(200 / (max(times) - min(times)), rel=1e-4)
    assert stats.match(EDGE).value == pytest.approx(pairs_of(a, b) / (200 * 100))
    assert stats.match(EDGE).origin is Origin.EXACT
    assert stats.distinct("a", "[k]") == Estimate(float(len({row[0] for row in a} - {None})), Origin.EXACT)


def test_matches_are_those_of_all_rows_and_not_of_the_selected_ones(bench: Bench) -> None:
    chance = random.Random(5)
    a, b = random_rows(chance, 300), random_rows(chance, 300)
    session = bench.open()
    session.create_query(SELECTIVE, "some")
    bench.push(session, a=a, b=b)
    over = ([row for row in a if (row[1] or 0) > 3], [row for row in b if (row[1] or 0) > 7])
    wanted_pairs = pairs_of(*over)
    # The store keeps wanted rows only, so these are all that can be counted.
    assert statistics(session).match(EDGE).value == pytest.approx(wanted_pairs / (len(over[0]) * len(over[1])))
    rows = statistics(session).rows("a")
    assert rows.value == pytest.approx(300)
    assert rows.origin is Origin.ESTIMATED
    assert statistics(session).stored_rows("a") == Estimate(float(len(over[0])), Origin.EXACT)


def test_keys_are_counted_by_group(bench: Bench) -> None:
    rows = random_rows(random.Random(1), 500)
    session = bench.open(key_groups=8)
    session.create_query(JOIN, "q")
    bench.push(session, a=rows, splits=2)
    codes = hash_keys([pa.array([row[0] for row in rows if row[0] is not None], pa.int32())]).codes
    expected = Counter(group_of_codes(codes, 8).tolist())
    assert statistics(session).rows_by_group("a", "[k]") == tuple(float(expected[group]) for group in range(8))


def test_a_frequent_key_is_named_with_its_share(bench: Bench) -> None:
    rows: list[Row] = [(7 if i % 4 == 0 else 1000 + i, 0, i / 1000) for i in range(4000)]
    session = bench.open()
    session.create_query(JOIN, "q")
    bench.push(session, a=rows)
    code = int(hash_keys([pa.array([7], pa.int32())]).codes[0])
    assert statistics(session).heavy_share_by_code("a", "[k]") == {code: 0.25}


def test_late_rows_have_a_share_and_no_part_in_the_rate(bench: Bench) -> None:
    session = bench.open()
    session.create_query(JOIN, "q")
    bench.push(session, a=[(1, 1, 0), (1, 1, 10)])
    bench.push(session, a=[(1, 1, 5), (1, 1, 15), (1, 1, 20), (1, 1, 6)])
    late, rate = statistics(session).late_share("a"), statistics(session).rows_per_s("a")
    assert late == Estimate((0 * 0.5 + 2 * 0.5) / (2 * 0.5 + 4 * 0.5), Origin.EXACT)
    assert rate == Estimate((2 + 2) / (10 + 10), Origin.EXACT)


def test_a_time_bound_leaves_the_match_an_estimate_near_the_truth(bench: Bench) -> None:
    chance = random.Random(3)
    session = bench.open()
    session.create_query(f"{JOIN} WITHIN 2 SECONDS", "q")
    for batch in range(4):
        a, b = (random_rows(chance, 1000, since_s=10 * batch, keys=10) for _ in range(2))
        bench.push(session, a=sorted(a, key=lambda row: row[2]), b=b)
    found = statistics(session).match(EDGE)
    assert found.origin is Origin.ESTIMATED
    assert found.relative_error == pytest.approx(EVEN_TIMES_ERROR)
    assert found.value == pytest.approx(0.9 * 0.9 / 10, rel=0.1)


def test_a_later_hop_says_what_its_edge_matches(bench: Bench) -> None:
    session = bench.open()
    session.create_query("SELECT x.v FROM a x JOIN b y ON x.k = y.k JOIN a z ON y.v = z.v", "q")
    rows: list[Row] = [(i % 4, i % 5, 0.0) for i in range(40)]
    bench.push(session, a=rows, b=rows)
    bench.push(session, a=rows, b=rows)
    assert statistics(session).match(EDGE) == Estimate(0.25, Origin.EXACT)
    assert statistics(session).match(edge_text("a.v", "b.v")).value == pytest.approx(0.2)


def test_steps_say_how_many_rows_each_row_finds(bench: Bench) -> None:
    session = bench.open()
    session.create_query(JOIN, "q")
    bench.push(session, b=[(1, 1, 0), (1, 2, 0), (2, 1, 0)])
    bench.push(session, a=[(1, 1, 1), (2, 1, 1), (3, 1, 1)])
    plan = session.engine.plans.planned().plan
    (node,) = next(tree for tree in plan.trees if tree.start == "a").children
    assert statistics(session).step(node.id) == Estimate(1.0, Origin.EXACT)


def test_a_batch_that_runs_again_is_counted_once(bench: Bench) -> None:
    session = bench.open()
    session.create_query(JOIN, "q")
    bench.push(session, a=[(1, 1, 0)], b=[(1, 1, 0)])
    before = session.engine.head.statistics
    session.redeliver()
    assert session.engine.head.statistics == before


META = BucketMeta("a", "p", 0, 0, 0, 0, 100, 1, 1, 0, 99, (), (), True, ())


@given(st.integers(0, 50), st.integers(0, 50))
def test_rows_within_bounds_are_a_share_of_the_overlap(before: int, after: int) -> None:
    moment = replace(META, rows=1, min_time_us=50, max_time_us=50)
    found = visible_rows(TimeSpread.of([moment]), TimeSpread.of([META]), -before, after)
    assert found == pytest.approx(min(before + after + 1, 50 + before))


def test_rows_without_a_time_are_within_no_bounds() -> None:
    timeless = TimeSpread.of([replace(META, min_time_us=None, max_time_us=None)])
    timed = TimeSpread.of([META])
    assert visible_rows(timed, timeless, -5, 5) == visible_rows(timeless, timed, -5, 5) == 0.0


def test_new_rows_count_by_how_many_they_are() -> None:
    stored = TimeSpread.of([META])
    inside, outside = replace(META, rows=3, max_time_us=0), replace(META, rows=1, min_time_us=500, max_time_us=500)
    assert visible_rows(TimeSpread.of([inside, outside]), stored, 0, 9) == pytest.approx(10 * 3 / 4)


@pytest.mark.parametrize("year", [-140_000, 1, 1600, 1970, 2300, 9999, 140_000])
def test_rows_are_counted_alike_whenever_they_happened(year: int) -> None:
    since_us = (year - 1970) * 31_556_952_000_000
    moment = replace(META, rows=1, min_time_us=since_us + 50, max_time_us=since_us + 50)
    stored = replace(META, min_time_us=since_us, max_time_us=since_us + 99)
    assert visible_rows(TimeSpread.of([moment]), TimeSpread.of([stored]), -5, 5) == pytest.approx(11)
    assert visible_rows(TimeSpread.of([moment]), TimeSpread.of([moment]), -5, 5) == pytest.approx(1)


def test_the_earliest_and_the_latest_moment_see_nothing_of_each_other() -> None:
    first = replace(META, rows=1, min_time_us=-(1 << 63) + 1, max_time_us=-(1 << 63) + 1)
    last = replace(META, rows=1, min_time_us=(1 << 63) - 1, max_time_us=(1 << 63) - 1)
    assert visible_rows(TimeSpread.of([first]), TimeSpread.of([last]), -5, 5) == 0.0
    assert visible_rows(TimeSpread.of([last]), TimeSpread.of([first, last]), -5, 5) == 1.0


@pytest.mark.parametrize("kind", [*observe_batch.TALLIES, "keys_seen", "rows_sampled", "key_groups_seen", "by_store"])
def test_statistics_that_cannot_be_had_stop_nobody(
    bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> Iterator[Any]:
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr(attempted, "_said", set())
    if kind in observe_batch.TALLIES:
        monkeypatch.setattr(observe_batch, "TALLIES", {**observe_batch.TALLIES, kind: broken})
    else:
        monkeypatch.setattr(observe_batch, kind, broken)
    session = bench.open()
    session.create_query(JOIN, "q")
    for _ in range(2):
        bench.push(session, a=[(1, 1, 0)], b=[(1, 1, 0)])
    assert session.results("q").num_rows == 4
    assert session.engine.queries.named("q").error is None
    assert caplog.text.count("are left out; said once: ZeroDivisionError") == 1
    if kind == "steps":
        assert statistics(session).batch_rows("a") == Estimate(1.0, Origin.EXACT)


def test_figures_are_there_after_a_restart(bench: Bench) -> None:
    session = bench.open()
    session.create_query(JOIN, "q")
    bench.push(session, a=[(1, 1, 0), (2, 1, 1)], b=[(1, 1, 0)])
    before = statistics(session)
    session.close()
    again = statistics(bench.open())
    assert again.match(EDGE) == before.match(EDGE) == Estimate(0.5, Origin.EXACT)
    assert again.rows_per_s("a") == before.rows_per_s("a")
    assert again.distinct("a", "[k]") is None


def test_the_stored_figures_of_a_hundred_queries_are_small(bench: Bench) -> None:
    session = bench.open()
    for place in range(100):
        session.create_query(f"{JOIN} WHERE a.v > {place} AND b.v < {place}", f"q{place}")
    bench.push(session, a=[(1, 1, 0)], b=[(1, 1, 0)])
    stored = session.engine.head.statistics.observed.to_json()
    assert len(json.dumps(stored)) < 64 << 10
    assert sum(entry[0] == "SELECTION" for entry in stored) == 200
