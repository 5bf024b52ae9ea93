"""What tests and benchmarks set, and users leave alone."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.errors import SessionError
from dovetail.engine.options.option import check_one_of, check_whole, option
from dovetail.plan.shipping import Copies


@dataclass(frozen=True)
class EngineTuning:
    """Inner settings of the engine: `Session(..., tuning=EngineTuning(small_batch_rows=0))`.

    No answer depends on them. They may change with any version.
    """

    merge_fanout: int = option(4, "so many neighbouring buckets of a level become one")
    max_pairs: int = option(4_000_000, "joined pairs that a task holds in memory at once")
    piece_bytes: int = option(256 << 20, "bytes of received rows that a task holds in memory at once")
    own_file_bytes: int = option(4 << 20, "bytes of a query's answers in a task that are worth a file of their own")
    small_batch_rows: int = option(
        20_000, "after a batch of fewer rows and little work the next runs as one task: stages would cost more"
    )
    replan: bool = option(True, "`False`: a plan stays until queries change")
    plan_in_background: bool = option(True, "`False`: a batch waits for its joint plan")
    factorize: bool = option(
        True, "`False`: aggregates over joins are computed from their joined rows even where they need not be"
    )
    routing_subgroups: int | None = option(
        None, 'with `routing="contrand"`: how many groups the partitions form', "root of `partitions`"
    )
    copies: str = option(
        Copies.PARTITION.value,
        'with `exchange="rows"`: a row travels once to each `partition` that needs it, or once for each `key`',
    )
    low_load: float = option(0.3, "of `elastic`: below this load fewer partitions are wished for")
    target_load: float = option(0.6, "of `elastic`: the load that a change aims at")
    high_load: float = option(0.8, "of `elastic`: above this load more partitions are wished for")
    scale_after: int = option(3, "of `elastic`: batches in a row that must wish the same")

    def __post_init__(self) -> None:
        check_whole("merge_fanout", self.merge_fanout, 2)
        check_whole("max_pairs", self.max_pairs, 1)
        check_whole("piece_bytes", self.piece_bytes, 1)
        check_whole("own_file_bytes", self.own_file_bytes, 1)
        check_whole("small_batch_rows", self.small_batch_rows, 0)
        check_whole("scale_after", self.scale_after, 1)
        if self.routing_subgroups is not None:
            check_whole("routing_subgroups", self.routing_subgroups, 1)
        for name in ("replan", "plan_in_background", "factorize"):
            check_one_of(name, getattr(self, name), (True, False))
        check_one_of("copies", self.copies, tuple(each.value for each in Copies))
        for name in ("low_load", "target_load", "high_load"):
            if type(getattr(self, name)) not in (int, float):
                raise SessionError(f"{name} is {getattr(self, name)!r}", hint="use a number, e.g. 0.6")
