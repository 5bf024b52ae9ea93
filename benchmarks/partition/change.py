"""What a new placement costs the batch that takes it: keys that go together, and from the middle on with others.

Every row of `a` has two keys, one that rows of `b` ask for and one that rows of `c` do. Few values of the one go with
each of the other, so that placing them together ships most rows once. In the middle all pairs change, and the placement
follows. A batch edge is all that it takes, so the batch after it should last no longer than its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.data.folder_case import NO_LIMITS
from benchmarks.data.workloads import EVENT_TIME_START_US, write_files
from benchmarks.partition.case import MODES
from benchmarks.replay import Replay, StreamFolder, replay
from benchmarks.workbench import Workbench

BATCHES = 24
QUICK_BATCHES = 10
DEFAULT_ROWS_A_BATCH = 60_000
QUICK_ROWS_A_BATCH = 4_000
KEYS = 64
BATCH_US = 1_000_000
NEIGHBOURS = 2
"""On each side of a batch."""

DDL_BY_STREAM = {
    "a": "ts timestamp, k bigint, m bigint, v bigint",
    "b": "ts timestamp, k bigint",
    "c": "ts timestamp, m bigint",
}
_COUNT = (
    "SELECT x.{key}, COUNT(*) AS n, SUM(a.v) AS v FROM a JOIN {other} x ON a.{key} = x.{key} {bound} GROUP BY x.{key}"
)
_BOUND = "AND x.ts BETWEEN a.ts - INTERVAL 10 MILLISECONDS AND a.ts + INTERVAL 10 MILLISECONDS"
QUERIES = {name: _COUNT.format(key=key, other=name, bound=_BOUND) for name, key in (("b", "k"), ("c", "m"))}


def measure_change(bench: Workbench, partitions: int) -> dict[str, object]:
    """`longer`: by what share a batch with a new placement lasted longer than the median of its neighbours."""
    quick = bench.options.quick
    batches = QUICK_BATCHES if quick else BATCHES
    rows = QUICK_ROWS_A_BATCH if quick else DEFAULT_ROWS_A_BATCH
    streams = write_change(bench.fresh_folder("change"), batches, rows, bench.options.seed)
    options = {**NO_LIMITS, "small_batch_rows": 0, "partitions": partitions, **MODES["shared"]}
    with bench.steps.step("keys that change their company"):
        bench.collect_garbage()
        done = replay(bench.spark, streams, QUERIES, bench.fresh_folder("dovetail"), options, read_rows=True)
    shipped = [int(batch["shipped"]["rows"]) for batch in done.progress]
    placed = placed_in(done.progress)
    return {
        "batches": batches,
        "rows_a_batch": rows,
        "placed_in_batches": placed,
        "longer": [round(longer(done, batch), 3) for batch in placed],
        "batch_ms": [round(ms) for ms in done.batch_ms],
        "shipped_rows": shipped,
    }


def placed_in(progress: tuple[Mapping[str, Any], ...]) -> list[int]:
    """The batches that ran by a placement that none before had; one that the next batch would take is told, too."""
    placed = {batch.get("placement", {}).get("placedInBatch") for batch in progress}
    return sorted(batch for batch in placed if batch is not None and batch < len(progress))


def longer(done: Replay, batch: int) -> float:
    lower, upper = max(1, batch - NEIGHBOURS), batch + 1 + NEIGHBOURS
    around = [ms for place, ms in enumerate(done.batch_ms[:upper]) if place >= lower and place != batch]
    return done.batch_ms[batch] / median(around) - 1.0


def write_change(folder: Path, batches: int, rows_a_batch: int, seed: int) -> list[StreamFolder]:
    tables = list(_batches(batches, rows_a_batch, seed))
    for name in DDL_BY_STREAM:
        write_files(folder / name, (batch[name] for batch in tables))
    return [StreamFolder(name, folder / name, ddl, "ts") for name, ddl in DDL_BY_STREAM.items()]


def _batches(count: int, rows: int, seed: int) -> Iterator[dict[str, pa.Table]]:
    rng = np.random.default_rng(seed)
    company = [rng.permutation(KEYS) for _ in range(2)]
    for batch in range(count):
        k = rng.integers(0, KEYS, rows)
        m = company[2 * batch // count][k]
        few = max(1, rows // 20)
        yield {
            "a": pa.table({"ts": _times(rng, batch, rows), "k": k, "m": m, "v": rng.integers(0, 1000, rows)}),
            "b": pa.table({"ts": _times(rng, batch, few), "k": rng.integers(0, KEYS, few)}),
            "c": pa.table({"ts": _times(rng, batch, few), "m": rng.integers(0, KEYS, few)}),
        }


def _times(rng: np.random.Generator, batch: int, count: int) -> pa.Array:
    times = EVENT_TIME_START_US + batch * BATCH_US + np.sort(rng.integers(0, BATCH_US, count))
    return pa.array(times).cast(pa.timestamp("us", tz="UTC"))
