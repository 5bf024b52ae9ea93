"""Suite `skew`: how evenly 16 units are busy when keys are Zipf-distributed, by routing; needs no Spark.

Two streams join on a key within a short window. A unit is a partition; its work is what it really did, the rows that
probed in it plus the pairs that they found, and beside it the seconds of its tasks. A batch waits for its slowest unit,
so the figure is the slowest unit's work summed over batches, over the mean's. Three routings: hash, ContRand, and the
session's own choice («auto», called `split`: it splits the keys that it finds to be hot). The first batches, in which
the session learns of the skew, count for none of them. All units run one after the other in this process, so that their
seconds are their own; `total_s` is of all of them together.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.local_runs import answers_of
from benchmarks.measure import Steps
from benchmarks.options import BenchError, BenchOptions
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.verify import Answer
from dovetail.engine.engine import Engine
from dovetail.engine.options import make_options
from dovetail.kernels.arrow_types import sql_type_of
from dovetail.query.stream import Stream
from dovetail.runtime.local.run_local import run_local

EXPONENTS = (0.0, 0.8, 1.2, 2.0)
UNITS = 16
SUBGROUPS = 4
KEYS = 100_000
STREAMS = ("a", "b")
DEFAULT_ROWS = 240_000
QUICK_ROWS = 36_000
"""Of one exponent, both streams together."""

BATCHES = 12
QUICK_BATCHES = 6
LEARNING_BATCHES = 3
BATCH_US = 10_000_000
WINDOW_US = 100_000
ROUTINGS: Mapping[str, Mapping[str, Any]] = {
    "hash": {"routing": "hash"},
    "contrand": {"routing": "contrand", "routing_subgroups": SUBGROUPS},
    "split": {"routing": "auto"},
}
SQL = (
    "SELECT a.id AS a_id, b.id AS b_id, a.k AS k FROM a JOIN b ON a.k = b.k "
    "AND a.ts >= b.ts - INTERVAL 100 MILLISECONDS AND a.ts <= b.ts + INTERVAL 100 MILLISECONDS"
)


@dataclass(frozen=True)
class SkewedRows:
    """Batches of both streams; keys of rank 1, 2, ... are as frequent as 1, 2 ** -exponent, ..."""

    exponent: float
    rows_a_batch: int
    batch_count: int
    seed: int

    def batches(self) -> Iterator[dict[str, pa.Table]]:
        rng = np.random.default_rng((self.seed, round(10 * self.exponent)))
        weights = np.arange(1, KEYS + 1) ** -self.exponent
        upper = np.cumsum(weights) / weights.sum()
        for batch in range(self.batch_count):
            tables = {}
            for stream in STREAMS:
                times = np.sort(rng.integers(0, BATCH_US, self.rows_a_batch)) + batch * BATCH_US
                tables[stream] = pa.table(
                    {
                        "id": np.arange(self.rows_a_batch) + batch * self.rows_a_batch,
                        "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                        "k": np.searchsorted(upper, rng.random(self.rows_a_batch)),
                    }
                )
            yield tables


@dataclass
class SkewRun:
    """Work and seconds by measured batch and unit."""

    work: list[list[int]] = field(default_factory=list)
    unit_seconds: list[list[float]] = field(default_factory=list)
    seconds: float = 0.0
    split_keys: int = 0
    answers: pa.Table | None = None


def run(options: BenchOptions, steps: Steps) -> dict[str, object]:
    batch_count = QUICK_BATCHES if options.quick else BATCHES
    rows_a_batch = max(1, options.rows_or(DEFAULT_ROWS, QUICK_ROWS) // (2 * batch_count))
    figures: dict[str, dict[str, dict[str, float]]] = {
        name: {} for name in ("imbalance", "imbalance_seconds", "total_s")
    }
    results: dict[str, int] = {}
    split_keys: dict[str, int] = {}
    is_equal = True
    for exponent in EXPONENTS:
        name = f"{exponent:g}"
        batches = list(SkewedRows(exponent, rows_a_batch, batch_count, options.seed).batches())
        expected = expected_answer(batches, options.cores)
        results[name] = expected.row_count
        for routing in ROUTINGS:
            best, is_right = _best_run(name, routing, batches, expected, options, steps)
            is_equal &= is_right
            figures["imbalance"].setdefault(name, {})[routing] = round(slowest_over_mean(best.work), 3)
            figures["imbalance_seconds"].setdefault(name, {})[routing] = round(slowest_over_mean(best.unit_seconds), 3)
            figures["total_s"].setdefault(name, {})[routing] = round(best.seconds, 3)
            split_keys[name] = best.split_keys
    if not is_equal:
        steps.note("[red]an answer differs from DuckDB's[/red]")
    return {
        "rows": 2 * rows_a_batch * batch_count,
        "batches": batch_count,
        "units": UNITS,
        "subgroups": SUBGROUPS,
        **figures,
        "results": results,
        "split_keys": split_keys,
        "results_equal": is_equal,
    }


def slowest_over_mean(by_batch: list[list[Any]]) -> float:
    """The slowest unit's amounts, summed over batches, over the mean's.

    >>> slowest_over_mean([[2, 1], [1, 2]])
    1.3333333333333333
    """
    slowest = sum(max(units) for units in by_batch)
    mean = sum(sum(units) / len(units) for units in by_batch)
    return slowest / mean if mean else 1.0


def expected_answer(batches: list[dict[str, pa.Table]], threads: int) -> Answer:
    """DuckDB's, from slices of time: all rows at once would be too many pairs of equal key for anybody."""
    rows, checksum = 0, 0
    whole = pa.concat_tables([batch["b"] for batch in batches])
    with DuckDbViews({}, threads) as duckdb:
        duckdb.add_table("all_b", whole)
        for batch, tables in enumerate(batches):
            lower, upper = batch * BATCH_US - WINDOW_US, (batch + 1) * BATCH_US + WINDOW_US
            duckdb.add_table("a", tables["a"])
            duckdb.run_statement(
                f"CREATE OR REPLACE TEMP TABLE b AS SELECT * FROM all_b WHERE epoch_us(ts) BETWEEN {lower} AND {upper}"
            )
            answer = duckdb.answer(SQL)
            rows, checksum = rows + answer.row_count, checksum + answer.checksum
    return Answer(rows, checksum)


def _best_run(
    name: str,
    routing: str,
    batches: list[dict[str, pa.Table]],
    expected: Answer,
    options: BenchOptions,
    steps: Steps,
) -> tuple[SkewRun, bool]:
    """The fastest of the repeats, and whether all of them had the right answer."""
    runs = []
    is_equal = True
    for _ in range(options.repeats_or(2)):
        with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as folder:
            with steps.step(f"Zipf {name}: {routing}"):
                runs.append(_run(Path(folder), batches, ROUTINGS[routing]))
            with DuckDbViews({}, options.cores) as duckdb:
                found = runs[-1].answers
                is_equal &= found is not None and duckdb.answer_of_table(found) == expected
    return min(runs, key=lambda each: each.seconds), is_equal


def _run(folder: Path, batches: list[dict[str, pa.Table]], options: Mapping[str, Any]) -> SkewRun:
    engine = Engine(folder, make_options(partitions=UNITS, **options))
    run = SkewRun()
    try:
        for stream in STREAMS:
            columns = tuple((column.name, sql_type_of(column.type)) for column in batches[0][stream].schema)
            engine.streams.create(Stream(stream, columns, "ts"))
        query = engine.queries.create(SQL, "q")
        for number, tables in enumerate(batches):
            began = time.perf_counter()
            engine.batches.run(number, lambda task, tables=tables: run_local(task, tables))  # type: ignore[misc]
            run.seconds += time.perf_counter() - began
            if number >= LEARNING_BATCHES:
                assert engine.head.figures is not None
                units = engine.head.figures.units
                run.work.append([unit.work for unit in units])
                run.unit_seconds.append([unit.seconds for unit in units])
        record = engine.queries.record(query.id)
        if record.error:
            raise BenchError(f"the query failed: {record.error}")
        run.split_keys = len(
            {code for *_, routing in engine.plans.planned().plan.routings for code in routing.split_codes}
        )
        run.answers = answers_of(engine, query.id)
    finally:
        engine.close()
    return run
