"""The chain's data are what CLASH Fig. 8 asks for, before and after the change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.data.chains import (
    PARTNERS,
    RATE_RATIO,
    WINDOW_S,
    ChainData,
    chain_sql,
    figures_before,
    rows_of_second,
    write_chain,
)
from benchmarks.data.workloads import EVENT_TIME_START_US
from benchmarks.options import BenchError
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.replay import duckdb_views
from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.passes.choose_probe_orders import choose_probe_order
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, TIMESTAMP

RATE = 200
CHANGE_S = 8


@pytest.fixture(scope="module")
def data() -> ChainData:
    return ChainData(RATE, is_b=False, change_s=CHANGE_S, seconds=16)


@pytest.fixture
def duckdb(data: ChainData, tmp_path: Path) -> Iterator[DuckDbViews]:
    with DuckDbViews(duckdb_views(write_chain(data, tmp_path)), threads=1) as views:
        yield views


def _earlier_pairs(duckdb: DuckDbViews, probe: str, stored: str, key: str, lower_s: int, upper_s: int) -> int:
    """Rows of `stored` in the window before each row of `probe` that arrives from second `lower_s` on."""
    start = f"make_timestamp({EVENT_TIME_START_US} + {{}} * 1000000)"
    return duckdb.number(
        f"SELECT count(*) FROM {probe} JOIN {stored} ON {probe}.{key} = {stored}.{key} "
        f"AND {stored}.ts BETWEEN {probe}.ts - INTERVAL {WINDOW_S} SECONDS AND {probe}.ts "
        f"WHERE {probe}.ts >= {start.format(lower_s)} AND {probe}.ts < {start.format(upper_s)}"
    )


@pytest.mark.parametrize(("probe", "stored", "key"), [("s", "r", "a"), ("t", "u", "c"), ("s", "t", "b")])
def test_before_the_change_about_half_of_the_rows_find_a_partner(
    duckdb: DuckDbViews, probe: str, stored: str, key: str
) -> None:
    row_count = RATE * (CHANGE_S - WINDOW_S)
    assert 0.3 * row_count < _earlier_pairs(duckdb, probe, stored, key, WINDOW_S, CHANGE_S) < 0.7 * row_count


@pytest.mark.parametrize(("probe", "stored", "key"), [("s", "r", "a"), ("t", "u", "c")])
def test_after_the_change_an_inner_row_finds_a_hundred_earlier_outer_ones(
    duckdb: DuckDbViews, probe: str, stored: str, key: str
) -> None:
    assert _earlier_pairs(duckdb, probe, stored, key, CHANGE_S + 1, 16) == PARTNERS * RATE * (16 - CHANGE_S - 1)
    assert _earlier_pairs(duckdb, stored, probe, key, CHANGE_S + 1, 16) == 0


def test_after_the_change_the_inner_streams_share_no_key(duckdb: DuckDbViews) -> None:
    assert _earlier_pairs(duckdb, "s", "t", "b", CHANGE_S, 16) == 0
    assert _earlier_pairs(duckdb, "t", "s", "b", CHANGE_S, 16) == 0


def test_the_fast_stream_of_8b_goes_on_while_the_join_of_the_others_gets_small(tmp_path: Path) -> None:
    data = ChainData(100, is_b=True, change_s=6, seconds=12)
    assert rows_of_second(data, "r", 0).num_rows == RATE_RATIO * rows_of_second(data, "t", 0).num_rows
    with DuckDbViews(duckdb_views(write_chain(data, tmp_path)), threads=1) as duckdb:
        before, after = (_earlier_pairs(duckdb, "r", "s", "a", lower, upper) for lower, upper in ((5, 6), (11, 12)))
        assert 0.5 * before < after < 2 * before
        assert _earlier_pairs(duckdb, "t", "u", "c", 11, 12) < 0.2 * _earlier_pairs(duckdb, "t", "u", "c", 5, 6)


def test_figures_given_to_the_static_plan_have_inner_streams_meet_the_outer_ones_first(data: ChainData) -> None:
    columns = {"r": ("a",), "s": ("a", "b"), "t": ("b", "c"), "u": ("c",)}
    streams = {
        name: Stream(name, (("id", BIGINT), ("ts", TIMESTAMP), *((key, BIGINT) for key in keys)), "ts", 0)
        for name, keys in columns.items()
    }
    live = LiveQuery("q", "q", compile_sql(chain_sql(), streams, timezone="UTC"))
    orders = {
        start: choose_probe_order(live, start, figures_before(data), lambda *_: False).aliases for start in ("s", "t")
    }
    assert orders == {"s": ("s", "r", "t", "u"), "t": ("t", "u", "s", "r")}


def test_the_chain_has_results_before_the_change_only(duckdb: DuckDbViews) -> None:
    last_us = EVENT_TIME_START_US + CHANGE_S * 1_000_000
    joined = f"SELECT max(epoch_us(s.ts)) FROM ({chain_sql()}) AS q JOIN s ON s.id = q.s_id"
    assert duckdb.answer(chain_sql()).row_count > 0
    assert duckdb.number(joined) < last_us


@pytest.mark.parametrize("rate", [PARTNERS - 1, PARTNERS + 1])
def test_a_rate_at_which_rows_cannot_share_keys_is_refused(rate: int) -> None:
    with pytest.raises(BenchError, match="rows a second"):
        ChainData(rate, is_b=False)
