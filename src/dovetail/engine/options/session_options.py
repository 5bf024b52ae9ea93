"""The options of a session as an editor completes them: `Session(spark, folder, partitions=8)`."""

from __future__ import annotations

from typing import TypedDict

from dovetail.stats.catalog import StatsCatalog


class SessionOptions(TypedDict, total=False):
    """What each does is in docs/options.md. The records beside this file have the same names, defaults and checks."""

    partitions: int
    key_groups: int
    exchange: str
    placement: str
    routing: str
    optimizer: str
    keep_intermediates: str
    statistics: StatsCatalog | None
    elastic: bool
    min_partitions: int
    max_partitions: int | None
    max_bytes_per_partition: int
    storage_budget: int | None
    max_results_per_batch: int | None
    max_pairs_per_batch: int | None
    max_result_bytes_per_batch: int | None
    max_query_ms_per_batch: float | None
    max_query_bytes: int | None
    max_query_cost_ms: float | None
    idle_timeout: str | None
    durability: str
