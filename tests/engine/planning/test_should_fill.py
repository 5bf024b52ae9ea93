from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dovetail.engine.planning.fill_intermediates import LEAST_FILL_ROWS, FillPolicy
from dovetail.engine.planning.should_fill import FillCost, fill_cost, should_fill
from dovetail.engine.state import EngineState
from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.intermediates.candidates import intermediate_of
from dovetail.optimizer.intermediates.kept import KeptIntermediate, Use
from dovetail.optimizer.intermediates.maintaining_query import maintaining_query
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, TIMESTAMP
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.observed import ObservedStats
from dovetail.store.bucket_file import BucketMeta

SECOND = 1_000_000
COST = FillCost(driver_rows=1000, estimated_pairs=500.0, rows_a_batch=100, wait_batches=math.inf)
COLUMNS = (("x", BIGINT), ("y", BIGINT), ("v", BIGINT), ("ts", TIMESTAMP))
STREAMS = {name: Stream(name, COLUMNS, "ts") for name in "abc"}
CHAIN = "SELECT a.v, c.v FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y"
BOUNDS = " WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL 4 SECONDS AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 6 SECONDS"
STATS = StatsCatalog(
    observed=ObservedStats(
        {
            Figure(Kind.BATCH_ROWS, ("c",)): Tally(50, 1),
            Figure(Kind.ROWS_PER_S, ("c",)): Tally(100, 1),
            Figure(Kind.BATCH_ROWS, ("a",)): Tally(3000, 1),
        }
    )
)


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (COST, True),
        (replace(COST, driver_rows=0, wait_batches=0), True),
        (replace(COST, wait_batches=10), False),
        (replace(COST, wait_batches=11), True),
        (replace(COST, wait_batches=11, saved_rows_a_batch=100), False),
        (replace(COST, wait_batches=16, saved_rows_a_batch=100), True),
        (replace(COST, saved_rows_a_batch=0.0), True),
    ],
    ids=[
        "for ever",
        "nothing to fill",
        "as long as the fill",
        "longer than the fill",
        "waiting takes fewer rows",
        "waiting takes more rows",
        "for ever and little saved",
    ],
)
def test_a_fill_must_be_sooner_and_cheaper_than_the_wait(cost: FillCost, expected: bool) -> None:
    assert should_fill(cost) is expected


def test_a_fill_takes_a_batch_at_least() -> None:
    assert replace(COST, driver_rows=1).fill_batches == 1
    assert replace(COST, driver_rows=101).fill_batches == 2


def cost_of(sql: str, starts: tuple[str, ...] = ()) -> FillCost:
    """Rows of a and b up to 10 s, c's watermark at 8 s, half a second a batch."""
    live = LiveQuery("q", "q", compile_sql(sql, STREAMS, timezone="UTC"))
    use = Use("q", ("a", "b"), ("c",), starts)
    kept = KeptIntermediate(intermediate_of(live, ("a", "b"), STREAMS), 1, (use,))
    buckets = tuple(
        BucketMeta(store, "", batch, batch, 0, 0, rows, 1, 1, 0, 10 * SECOND, (), (), True, ())
        for store, batch, rows in (("a", 1, 300), ("a", 0, 999), ("b", 1, 20), ("b", 2, 30), ("c", 1, 7))
    )
    state = EngineState(batch=3, buckets=buckets, max_time_us_by_stream={"c": 8 * SECOND})
    return fill_cost(kept, maintaining_query(kept, {"q": live}, STREAMS), {"q": live}, STREAMS, state, STATS, 100)


def test_a_query_without_bounds_waits_for_ever() -> None:
    assert cost_of(CHAIN).wait_batches == math.inf


def test_a_bounded_query_waits_until_its_oldest_members_are_dead() -> None:
    # c may come 10 s after a: until its watermark is at 20 s, 12 s from now, 24 batches.
    assert cost_of(CHAIN + BOUNDS).wait_batches == pytest.approx(24)


def test_the_smallest_member_drives_and_rows_that_may_not_be_used_do_not_count() -> None:
    assert cost_of(CHAIN).driver_rows == 50


def test_a_start_that_probes_already_waits_for_nothing() -> None:
    assert cost_of(CHAIN, ("c",)).wait_batches == 0


def test_each_new_row_of_a_waiting_start_saves_a_probe_a_member() -> None:
    assert cost_of(CHAIN).saved_rows_a_batch == 50


def test_a_batch_spends_on_fills_what_it_usually_brings() -> None:
    assert FillPolicy().budget_rows(STATS, STREAMS) == 3050
    assert FillPolicy().budget_rows(StatsCatalog(), STREAMS) == LEAST_FILL_ROWS
    assert FillPolicy(rows_a_batch=3).budget_rows(STATS, STREAMS) == 3
