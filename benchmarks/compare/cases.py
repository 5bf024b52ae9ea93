"""What two revisions are compared by: the workloads of three suites, through the public API, which both have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data.workloads import StreamFiles, Workload, ajoin_queries, interval_join
from benchmarks.suites import queries, single, smallest


@dataclass(frozen=True)
class CompareCase:
    """`by_batch`: the median batch is what counts, not the run: start and end of a run would hide it."""

    name: str
    workload: Workload
    query_sql_by_name: Mapping[str, str]
    seconds_per_batch: int
    by_batch: bool = False

    def files(self, folder: Path) -> StreamFiles:
        return StreamFiles(self.workload, folder / self.name)


def all_cases() -> tuple[CompareCase, ...]:
    return (_single(), *map(_queries, queries.QUICK_QUERY_COUNTS), _smallest())


def _single() -> CompareCase:
    rate = single.DEFAULT_ROWS // (2 * single.SECONDS)
    workload = Workload(("a", "b"), single.SECONDS, rate, (2 * single.WINDOW_S * rate,) * 6)
    return CompareCase("single", workload, {"q": interval_join(single.WINDOW_S)}, single.BATCH_SIZES_S[1])


def _queries(count: int) -> CompareCase:
    rate = queries.QUICK_ROWS // (2 * queries.SECONDS)
    keys = queries.RANGE_OVER_RATE * rate
    workload = Workload(("a", "b"), queries.SECONDS, rate, (keys,) * 6)
    return CompareCase(f"queries-{count}", workload, ajoin_queries(count, keys, 1), queries.QUICK_BATCH_SIZES_S[0])


def _smallest() -> CompareCase:
    rate = smallest.ROWS_PER_SECOND
    workload = Workload(("a", "b"), smallest.SKIPPED_BATCHES + 30, rate, (2 * rate,) * 6)
    return CompareCase("smallest", workload, {"q": interval_join(1)}, 1, by_batch=True)
