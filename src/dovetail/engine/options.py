"""A session's options, checked when they are given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dovetail.core.errors import SessionError
from dovetail.engine.planning.scale_units import ScalingSettings
from dovetail.plan.routing import HASH, RANDOM, Routing
from dovetail.plan.shipping import Copies, Shipping
from dovetail.query.durations import DurationError, parse_duration
from dovetail.stats.catalog import StatsCatalog

MAX_KEY_GROUPS = 1 << 15
OPTIMIZERS = ("greedy", "joint")
KEEPING = ("never", "by cost", "always")
ROUTINGS = ("auto", "hash", "random", "contrand")
COPY_A_PARTITION = Copies.PARTITION.value
COPIES = tuple(each.value for each in Copies)
REFERENCES = "references"
ROWS = "rows"
EVEN = "even"
SHARED = "shared"
PLACEMENTS = ("auto", EVEN, SHARED)
LIMITS = {
    "storage_budget": "a number of bytes",
    "max_results_per_batch": "a number of results",
    "max_pairs_per_batch": "a number of pairs",
    "max_query_bytes": "a number of bytes",
    "max_query_cost_ms": "a number of milliseconds",
}


@dataclass(frozen=True)
class EngineOptions:
    """`key_groups` is fixed for a checkpoint's life; `partitions` may change with every start.

    `max_pairs` and `piece_bytes` bound what a task holds in memory at once: joined pairs, and rows it received.
    `optimizer` chooses probe orders: query by query («greedy») or for all together («joint»).
    `keep_intermediates`: joins of two or more streams as stores of their own, for queries of three and more; «by cost»
    where the joint optimizer finds that they pay, «always» wherever they are possible.
    `replan` off: a plan stays until queries change. `plan_in_background` off: a batch waits for its joint plan.
    `idle_timeout`, e.g. «10 minutes»: a stream without rows for so long holds back no other's state (guarantees.md).
    `max_results_per_batch` and `max_pairs_per_batch`: what a query may find that chooses nothing itself (limits.md).
    `max_query_bytes` and `max_query_cost_ms` refuse queries of which more is expected; a query that comes to keep more
    bytes all the same is quarantined.
    `routing`: how the rows of an index are spread over partitions; «auto» by predicate and skew, else the same for all
    keyed ones, «contrand» with `routing_subgroups` (None: about as many subgroups as partitions in each).
    `factorize` off: aggregates over joins are computed from their joined rows, where they need not be, too.
    `exchange`: what travels between tasks are «references» to rows in shared files; or «rows» themselves go to the
    partitions that keep them, `copies` of them once to each such partition, or once for each key (partitioning.md).
    `placement`: which partition has which key groups of which key. «shared» seeks, while batches run, a placement under
    which rows that several keys place travel to few partitions and all are equally busy; «even» spreads key groups
    evenly, once for all. «auto» is «shared» where a row goes once to each partition that needs it, else «even».
    `elastic`: the number of partitions follows the load (elastic.md), `partitions` is only the first. A partition is
    full when it keeps `max_bytes_per_partition`, or when a batch takes the trigger's whole interval. Its load is over
    `high_load` or under `low_load` for `scale_after` batches in a row: as many partitions as bring it to `target_load`,
    within `min_partitions` and `max_partitions` (None: `key_groups`).
    After a batch of fewer than `small_batch_rows` rows and little work the next runs as one task: stages would cost
    more.
    """

    partitions: int = 2
    key_groups: int = 128
    merge_fanout: int = 4
    max_pairs: int = 4_000_000
    piece_bytes: int = 256 << 20
    small_batch_rows: int = 20_000
    optimizer: str = "greedy"
    keep_intermediates: str = "never"
    replan: bool = True
    plan_in_background: bool = True
    factorize: bool = True
    routing: str = "auto"
    routing_subgroups: int | None = None
    exchange: str = REFERENCES
    copies: str = COPY_A_PARTITION
    placement: str = "auto"
    elastic: bool = False
    min_partitions: int = 1
    max_partitions: int | None = None
    max_bytes_per_partition: int = 1 << 30
    low_load: float = 0.3
    target_load: float = 0.6
    high_load: float = 0.8
    scale_after: int = 3
    timezone: str = "UTC"
    storage_budget: int | None = None
    idle_timeout: str | None = None
    max_results_per_batch: int | None = 100_000_000
    max_pairs_per_batch: int | None = 100_000_000
    max_query_bytes: int | None = None
    max_query_cost_ms: float | None = None
    statistics: StatsCatalog | None = None

    def __post_init__(self) -> None:
        if self.key_groups & (self.key_groups - 1) or not 1 <= self.key_groups <= MAX_KEY_GROUPS:
            raise SessionError(f"key_groups is {self.key_groups}", hint="use a power of two up to 32768, e.g. 128")
        if not 1 <= self.partitions <= self.key_groups:
            raise SessionError(
                f"partitions is {self.partitions}", hint=f"use 1 to key_groups, which is {self.key_groups}"
            )
        _check_whole("max_pairs", self.max_pairs, 1)
        _check_whole("piece_bytes", self.piece_bytes, 1)
        _check_whole("small_batch_rows", self.small_batch_rows, 0)
        _check_one_of("keep_intermediates", self.keep_intermediates, KEEPING)
        _check_one_of("optimizer", self.optimizer, OPTIMIZERS)
        if self.keep_intermediates == "by cost" and self.optimizer != "joint":
            raise SessionError(
                "keep_intermediates is 'by cost', and the greedy optimizer knows no costs",
                hint="use optimizer='joint', or keep_intermediates='never'",
            )
        _check_one_of("replan", self.replan, (True, False))
        _check_one_of("plan_in_background", self.plan_in_background, (True, False))
        _check_one_of("factorize", self.factorize, (True, False))
        _check_one_of("routing", self.routing, ROUTINGS)
        if self.routing_subgroups is not None:
            _check_whole("routing_subgroups", self.routing_subgroups, 1)
            if self.routing != "contrand":
                raise SessionError(
                    f"routing_subgroups is given, and routing is {self.routing!r}", hint="use routing='contrand'"
                )
        self._check_exchange()
        _check_one_of("placement", self.placement, PLACEMENTS)
        self._check_elastic()
        if self.merge_fanout < 2:
            raise SessionError(f"merge_fanout is {self.merge_fanout}", hint="use 2 or more")
        for name in LIMITS:
            _check_limit(name, getattr(self, name))
        _ = self.idle_timeout_s

    def _check_exchange(self) -> None:
        _check_one_of("exchange", self.exchange, (REFERENCES, ROWS))
        _check_one_of("copies", self.copies, COPIES)
        if self.exchange == REFERENCES and self.copies == Copies.KEY.value:
            raise SessionError(
                f"copies is {self.copies!r}, and exchange is {REFERENCES!r}",
                hint=f"use exchange={ROWS!r}, or leave copies out: references are not copied",
            )

    @property
    def places_by_samples(self) -> bool:
        """Whether it is sampled how rows fall on key groups, and placements follow that."""
        if self.placement == "auto":
            return self.shipping == Shipping(Copies.PARTITION)
        return self.placement == SHARED

    @property
    def shipping(self) -> Shipping | None:
        return Shipping(Copies(self.copies)) if self.exchange == ROWS else None

    def _check_elastic(self) -> None:
        _check_one_of("elastic", self.elastic, (True, False))
        for name, smallest in (("min_partitions", 1), ("max_bytes_per_partition", 1), ("scale_after", 1)):
            _check_whole(name, getattr(self, name), smallest)
        if self.max_partitions is not None:
            _check_whole("max_partitions", self.max_partitions, 1)
        for name in ("low_load", "target_load", "high_load"):
            if type(getattr(self, name)) not in (int, float):
                raise SessionError(f"{name} is {getattr(self, name)!r}", hint="use a number, e.g. 0.6")
        given = [name for name, usual in INELASTIC.items() if getattr(self, name) != usual]
        if given and not self.elastic:
            raise SessionError(
                f"{given[0]} is given, and the number of partitions is fixed", hint="use elastic=True, or leave it out"
            )
        _ = self.scaling

    @property
    def scaling(self) -> ScalingSettings:
        """How the number of partitions follows the load, where it does."""
        if self.max_partitions is not None and self.max_partitions > self.key_groups:
            raise SessionError(
                f"max_partitions is {self.max_partitions}", hint=f"use 1 to key_groups, which is {self.key_groups}"
            )
        return ScalingSettings(
            self.min_partitions,
            self.max_partitions or self.key_groups,
            self.low_load,
            self.target_load,
            self.high_load,
            self.scale_after,
        )

    @property
    def may_place_by_one_key(self) -> bool:
        """Whether it spares copies that an index of several keys lies where one of them alone would have it."""
        return self.exchange == ROWS and self.copies == COPY_A_PARTITION

    @property
    def fixed_routing(self) -> Routing | None:
        """How keyed indexes are routed; None if skew decides."""
        if self.routing == "contrand":
            return Routing(subgroups=self.routing_subgroups or math.isqrt(self.partitions))
        return {"auto": None, "hash": HASH, "random": RANDOM}[self.routing]

    @property
    def idle_timeout_s(self) -> float | None:
        if self.idle_timeout is None:
            return None
        try:
            timeout_us = parse_duration(str(self.idle_timeout))
        except DurationError as error:
            raise SessionError(f"idle_timeout: {error}", hint=error.hint) from None
        if timeout_us <= 0:
            raise SessionError(f"idle_timeout is {self.idle_timeout!r}", hint="use e.g. '10 minutes', or None")
        return timeout_us / 1e6


INELASTIC: Mapping[str, Any] = {
    entry.name: entry.default
    for entry in fields(EngineOptions)
    if entry.name in {"elastic", "min_partitions", "max_partitions", "max_bytes_per_partition", "scale_after"}
    or entry.name.endswith("_load")
}
"""Options that only count for an elastic number of partitions, as they are without one."""


def _check_one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise SessionError(f"{name} is {value!r}", hint=f"use one of {', '.join(map(repr, choices))}")


def _check_limit(name: str, value: Any) -> None:
    if value is not None and (type(value) not in (int, float) or not value > 0):
        raise SessionError(f"{name} is {value!r}", hint=f"use {LIMITS[name]}, or None")


def _check_whole(name: str, value: Any, smallest: int) -> None:
    if not isinstance(value, int) or value < smallest:
        raise SessionError(f"{name} is {value!r}", hint=f"use a whole number from {smallest} on")


def make_options(**given: Any) -> EngineOptions:
    """Options by keyword; an unknown one is an error that lists those there are."""
    known = {entry.name for entry in fields(EngineOptions)}
    unknown = set(given) - known
    if unknown:
        raise SessionError(
            f"unknown option: {', '.join(sorted(unknown))}", hint=f"options are: {', '.join(sorted(known))}, trigger"
        )
    return EngineOptions(**given)
