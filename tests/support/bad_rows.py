"""Streams with rows that they cannot use: made at random, and run through crashes and retries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pyarrow as pa

from dovetail.testing.faults import CRASH_STEPS, Faults, SimulatedCrash
from dovetail.testing.local_session import LocalSession
from tests.support.oracles.answers import Answers, answers_of_table

SECOND = 1_000_000
START_US = 1_767_225_600 * SECOND
"""2026-01-01: in the past of every clock that runs these tests."""
NOW_S = 1_767_225_600.0 + 3600.0
AHEAD_US = START_US + 400 * 86_400 * SECOND
"""More than a day past the clock, and a time like any other if that is allowed."""
IMPOSSIBLE_US = (300_000_000_000_000_000, -70_000_000_000_000_000, -(2**63))
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
_ON = "ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"
QUERIES = {
    "inner": f"SELECT a.v AS av, b.v AS bv FROM a JOIN b {_ON}",
    "left": f"SELECT a.v AS av, b.v AS bv FROM a LEFT JOIN b {_ON}",
    "windows": "SELECT a.k, COUNT(*) AS n FROM a GROUP BY a.k, window(a.ts, '3 seconds')",
    "unbounded": "SELECT a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k",
}

Row = tuple[int, int, int | None]
Batch = Mapping[str, list[Row]]


@dataclass
class BadRowCase:
    """Batches of good rows, and the same with bad ones between them."""

    good: list[Batch]
    mixed: list[Batch]
    splits: int
    bad: dict[str, Counter[int]] = field(default_factory=dict)


def random_bad_row_case(seed: int) -> BadRowCase:
    rng = Random(seed)
    good: list[Batch] = []
    mixed: list[Batch] = []
    bad = {name: Counter[int]() for name in "ab"}
    for batch in range(rng.randint(3, 6)):
        rows = {name: [_good_row(rng, batch) for _ in range(rng.randint(0, 4))] for name in "ab"}
        with_bad = {name: list(own) for name, own in rows.items()}
        for name in "ab":
            for _ in range(rng.choice([0, 0, 1, 3])):
                row = (rng.randrange(3), rng.randrange(1000, 2000), rng.choice([*IMPOSSIBLE_US, AHEAD_US]))
                bad[name][row[1]] += 1
                with_bad[name].insert(rng.randint(0, len(with_bad[name])), row)
        good.append(rows)
        mixed.append(with_bad)
    return BadRowCase(good, mixed, rng.choice([1, 1, 2]), bad)


def _good_row(rng: Random, batch: int) -> Row:
    time = None if rng.random() < 0.1 else START_US + (batch * 2 + rng.randint(-1, 2)) * SECOND
    return rng.randrange(3), rng.randrange(1000), time


def table_of(rows: list[Row]) -> pa.Table:
    ks, vs, times = ([row[place] for row in rows] for place in range(3))
    stamps = pa.array(times, pa.int64()).view(pa.timestamp("us", "UTC"))
    return pa.table([pa.array(ks, pa.int64()), pa.array(vs, pa.int64()), stamps], schema=SCHEMA)


class BadRowRun:
    """A session on one folder; `rng` crashes it now and then."""

    def __init__(self, folder: Path, *, rng: Random | None = None, splits: int = 1, ahead: str = "1 day") -> None:
        self._folder, self._rng, self._splits, self._ahead = folder, rng, splits, ahead
        self.session = self._open()
        for name, sql in QUERIES.items():
            self.session.create_query(sql, name)

    def reopen(self, ahead: str) -> None:
        self.session.close()
        self._ahead = ahead
        self.session = self._open()

    def push(self, batch: Batch) -> None:
        number = self.session.engine.head.batch + 1
        tables = {name: table_of(rows) for name, rows in batch.items()}
        while self.session.engine.head.batch < number:
            try:
                self.session.push(tables, self._splits)
            except SimulatedCrash:
                self.reopen(self._ahead)

    def answers(self) -> dict[str, Answers]:
        return {name: answers_of_table(self.session.results(name)) for name in QUERIES}

    def bad_values(self, stream: str) -> Counter[int]:
        return Counter(row.values["v"] for row in self.session.bad_rows(stream))

    def _open(self) -> LocalSession:
        faults = Faults()
        if self._rng is not None and self._rng.random() < 0.7:
            faults = Faults(self._rng.choice(CRASH_STEPS), retry_tasks=self._rng.random() < 0.5)
        session = LocalSession(self._folder, faults=faults, clock=lambda: NOW_S)
        for name in "ab":
            session.create_stream(name, SCHEMA, "ts", "1 second", max_event_time_ahead=self._ahead)
        return session
