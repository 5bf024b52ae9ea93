"""A point of the suite `steady`: how many queries of which kind, rows a batch, and how long rows are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from benchmarks.adhoc.queries import WINDOWS_S, template_queries
from benchmarks.data.workloads import STREAM_NAMES, Workload
from benchmarks.options import BenchError
from benchmarks.steady.mixed_queries import SHARE_OF_PATTERN, SteadyQuery, mixed_queries

# Of a row's 2 * 2 s * rate / range partners (2 s: the mean window) selections leave half at every further stream.
RANGE_OVER_RATE = 5
SMALLEST_RANGE = 1000
NO_MERGES = 1 << 20
"""So many buckets never come together, so none are merged."""


@dataclass(frozen=True)
class Point:
    """A batch is a second of event time.

    Windows are `window_scale` times as long and keys are drawn from as many times more values, so a row finds as many
    partners among more buckets. `sparse` draws keys from as many times more values still: rows that find few partners.
    """

    queries: int = 500
    rows: int = 10_000
    window_scale: int = 1
    sparse: int = 1
    is_mixed: bool = False
    merges: bool = True

    def __post_init__(self) -> None:
        if self.queries < 1 or self.rows < len(STREAM_NAMES):
            raise BenchError(f"a point needs a query and {len(STREAM_NAMES)} rows a batch")
        if self.is_mixed and self.window_scale != 1:
            raise BenchError("the mix has windows of 1 to 3 s only")

    @property
    def rows_per_stream(self) -> int:
        return self.rows // len(STREAM_NAMES)

    @property
    def rows_per_batch(self) -> int:
        return self.rows_per_stream * len(STREAM_NAMES)

    @property
    def key_range(self) -> int:
        return max(SMALLEST_RANGE, RANGE_OVER_RATE * self.rows_per_stream) * self.window_scale * self.sparse

    @property
    def longest_window_s(self) -> int:
        return max(WINDOWS_S) * self.window_scale

    @property
    def tuning(self) -> Mapping[str, Any]:
        return {} if self.merges else {"merge_fanout": NO_MERGES}

    def workload(self, batches: int, seed: int) -> Workload:
        return Workload(STREAM_NAMES, batches, self.rows_per_stream, (self.key_range,) * 6, seed)

    def query_by_name(self, seed: int) -> dict[str, SteadyQuery]:
        if self.is_mixed:
            drawn = mixed_queries(self.key_range, seed)
        else:
            drawn = (
                SteadyQuery("template", replace(query, window_s=query.window_s * self.window_scale).sql)
                for query in template_queries(self.key_range, seed, SHARE_OF_PATTERN)
            )
        return {f"q{number:04d}": query for number, query in enumerate(islice(drawn, self.queries))}
