"""SASPAR's Listing 1: purchases and ads of a game, an aggregate and a join over the same windows of the purchases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tests.support.oracles.answers import Answers, answers_of_table

WINDOW = "[Range 10 seconds, Slide 5 seconds]"
AGGREGATE = f"""SELECT SUM(price)
FROM PURCHASES {WINDOW}
GROUP BY gemPackID"""
JOIN = f"""SELECT p.userID, p.gemPackID, p.price
FROM PURCHASES {WINDOW} as p, ADS {WINDOW} as a
WHERE p.userID = a.userID AND p.gemPackID = a.gemPackID"""

SIZE_US, SLIDE_US = 10_000_000, 5_000_000
LATENESS = "1 second"
LATENESS_US = 1_000_000
_TIME = pa.timestamp("us", tz="UTC")
PURCHASES_SCHEMA = pa.schema([("userID", pa.int64()), ("gemPackID", pa.int64()), ("price", pa.int64()), ("ts", _TIME)])
ADS_SCHEMA = pa.schema([("userID", pa.int64()), ("gemPackID", pa.int64()), ("ts", _TIME)])


@dataclass(frozen=True)
class GameRows:
    """Batches of both streams; the times of a batch lie after those of the one before."""

    batch_count: int = 6
    rows_a_batch: int = 40
    users: int = 8
    packs: int = 4
    seed: int = 1

    def batches(self) -> Iterator[dict[str, pa.Table]]:
        rng = np.random.default_rng(self.seed)
        for batch in range(self.batch_count):
            yield {
                "PURCHASES": self._rows(rng, batch, PURCHASES_SCHEMA),
                "ADS": self._rows(rng, batch, ADS_SCHEMA),
            }

    def _rows(self, rng: np.random.Generator, batch: int, schema: pa.Schema) -> pa.Table:
        size = self.rows_a_batch
        times = np.sort(rng.integers(batch * SLIDE_US, (batch + 1) * SLIDE_US, size))
        columns = {
            "userID": rng.integers(0, self.users, size),
            "gemPackID": rng.integers(0, self.packs, size),
            "price": rng.integers(1, 100, size),
            "ts": pa.array(times).cast(_TIME),
        }
        return pa.table({name: columns[name] for name in schema.names}, schema)


def expected_answers(batches: list[dict[str, pa.Table]]) -> dict[str, Answers]:
    """By a loop over windows: the sums of those that are closed, and the pairs of all of them."""
    rows = {name: [row for batch in batches for row in batch[name].to_pylist()] for name in ("PURCHASES", "ADS")}
    newest_us = max(_micros(row) for row in rows["PURCHASES"])
    sums: list[int] = []
    pairs: list[tuple[int, int, int]] = []
    for start in range(-SIZE_US, newest_us + 1, SLIDE_US):
        inside = {
            name: [row for row in found if start <= _micros(row) < start + SIZE_US] for name, found in rows.items()
        }
        if start + SIZE_US <= newest_us - LATENESS_US:
            by_pack: dict[int, int] = {}
            for row in inside["PURCHASES"]:
                by_pack[row["gemPackID"]] = by_pack.get(row["gemPackID"], 0) + row["price"]
            sums += by_pack.values()
        for row in inside["PURCHASES"]:
            key = (row["userID"], row["gemPackID"])
            count = sum((ad["userID"], ad["gemPackID"]) == key for ad in inside["ADS"])
            pairs += [(*key, row["price"])] * count
    tables = {
        "aggregate": pa.table({"sum": sums}),
        "join": pa.table({str(place): [pair[place] for pair in pairs] for place in range(3)}),
    }
    return {name: answers_of_table(table) for name, table in tables.items()}


def _micros(row: dict[str, object]) -> int:
    return int(row["ts"].timestamp() * 1_000_000)  # type: ignore[attr-defined]
