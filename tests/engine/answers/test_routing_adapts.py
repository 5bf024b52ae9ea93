"""A running session splits a key that becomes hot and unites it when it cools, without losing or doubling a pair."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dovetail.engine.explain.explain import explain_plan
from dovetail.plan.routing import Routing
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
SQL = "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts + INTERVAL 1 SECOND"
ROWS, HOT_KEY = 2000, 7


class Feed:
    """Batches of one second each; pairs within a second of each other are counted by brute force."""

    def __init__(self, folder: Path) -> None:
        self.session = LocalSession(folder, partitions=4, key_groups=128)
        for stream in ("a", "b"):
            self.session.create_stream(stream, SCHEMA, event_time="ts")
        self.session.create_query(SQL, "q")
        self._rng = np.random.default_rng(3)
        self._seconds = 0
        self._counts: list[dict[str, np.ndarray]] = []

    def push(self, hot_share: float, batches: int) -> None:
        for _ in range(batches):
            tables, counts = {}, {}
            for stream in ("a", "b"):
                keys = np.where(self._rng.random(ROWS) < hot_share, HOT_KEY, self._rng.integers(0, 100_000, ROWS))
                times = pa.array(np.full(ROWS, self._seconds * 10_000_000)).cast(SCHEMA.field("ts").type)
                tables[stream] = pa.table({"k": keys, "ts": times}, SCHEMA)
                counts[stream] = np.bincount(keys, minlength=100_000)
            self.session.push(tables)
            self._seconds += 1
            self._counts.append(counts)

    @property
    def expected(self) -> int:
        """No two batches are within a second."""
        return sum(int(counts["a"] @ counts["b"]) for counts in self._counts)

    @property
    def routings(self) -> set[Routing]:
        return {routing for *_, routing in self.session.engine.plans.planned().plan.routings}


def test_a_key_is_split_while_it_is_hot(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.push(0.0, 3)
    assert feed.routings == set()
    feed.push(0.2, 3)
    assert feed.routings
    assert all(len(routing.split_codes) == 1 for routing in feed.routings)
    feed.push(0.2, 1)
    assert (feed.session.progress or {})["work"]["slowestOverMean"] < 1.15
    assert "1 key with many stored rows dealt to all partitions" in explain_plan(feed.session.engine)
    feed.push(0.0, 12)
    assert feed.routings == set()
    reasons = [reason for change in feed.session.engine.plans.changes for reason in change.reasons]
    assert sum("is routed by" in reason for reason in reasons) == 4
    assert feed.session.results("q").num_rows == feed.expected


def test_statistics_speak_of_rows_however_many_units_they_probe(tmp_path: Path) -> None:
    values = []
    for place, options in enumerate(({}, {"routing": "random"}, {"routing": "contrand"})):
        session = LocalSession(tmp_path / str(place), partitions=6, key_groups=128, merge_fanout=2, **options)
        rng = np.random.default_rng(7)
        for stream in ("a", "b"):
            session.create_stream(stream, SCHEMA)
        session.create_query("SELECT a.k FROM a JOIN b ON a.k = b.k", "q")
        for _ in range(6):
            times = pa.array(np.zeros(200, np.int64)).cast(SCHEMA.field("ts").type)
            session.push({s: pa.table({"k": rng.integers(0, 40, 200), "ts": times}, SCHEMA) for s in "ab"}, splits=2)
        tallies = session.engine.head.statistics.observed.tallies
        values.append({str(figure): tally.part / tally.whole for figure, tally in tallies.items()})
        assert any("rows meet by" in figure for figure in values[-1])
        assert values[-1] == pytest.approx(values[0])
