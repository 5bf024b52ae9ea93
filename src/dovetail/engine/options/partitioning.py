"""Over how many tasks work is spread, and by what."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.errors import SessionError
from dovetail.engine.options.option import check_one_of, check_whole, option

MAX_KEY_GROUPS = 1 << 15
ROUTINGS = ("auto", "hash", "random", "contrand")
REFERENCES = "references"
ROWS = "rows"
EVEN = "even"
SHARED = "shared"
PLACEMENTS = ("auto", EVEN, SHARED)


@dataclass(frozen=True)
class Partitioning:
    """Partitions and what travels between them (docs/partitioning.md)."""

    partitions: int = option(2, "tasks of a hop; may change with every start", "Spark's default parallelism")
    key_groups: int = option(
        128, "units of placement, a power of two from `partitions` on; fixed for the life of a checkpoint"
    )
    exchange: str = option(
        REFERENCES,
        "what travels between tasks: `references` to rows in shared files, or the `rows` themselves, to the partitions"
        " that join them ([partitioning](partitioning.md#what-is-shipped))",
    )
    placement: str = option(
        "auto",
        "which partition has which key groups: `even`, or `shared`: sought while batches run, so that rows travel to"
        " few partitions and all are equally busy; `auto` is `shared` where rows are shipped, else `even`"
        " ([partitioning](partitioning.md#how-placement-follows-the-data))",
    )
    routing: str = option(
        "auto",
        "how the rows of an index are spread over partitions: `auto` by predicate and skew, or `hash`, `random`,"
        " `contrand` for all that have a key ([optimizer](optimizer.md#routing))",
    )

    def __post_init__(self) -> None:
        check_whole("key_groups", self.key_groups, 1)
        check_whole("partitions", self.partitions, 1)
        if self.key_groups & (self.key_groups - 1) or not 1 <= self.key_groups <= MAX_KEY_GROUPS:
            raise SessionError(f"key_groups is {self.key_groups}", hint="use a power of two up to 32768, e.g. 128")
        if not 1 <= self.partitions <= self.key_groups:
            raise SessionError(
                f"partitions is {self.partitions}", hint=f"use 1 to key_groups, which is {self.key_groups}"
            )
        check_one_of("exchange", self.exchange, (REFERENCES, ROWS))
        check_one_of("placement", self.placement, PLACEMENTS)
        check_one_of("routing", self.routing, ROUTINGS)
