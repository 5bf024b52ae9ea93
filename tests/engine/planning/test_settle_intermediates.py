from __future__ import annotations

import pytest

from dovetail.engine.control.coverage import Segment, StoreHistory
from dovetail.engine.planning.settle_intermediates import settle_intermediates
from dovetail.engine.state import EngineState
from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.intermediates.candidates import intermediate_of
from dovetail.optimizer.intermediates.kept import KeptIntermediate, Use
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, TIMESTAMP
from dovetail.store.bucket_file import BucketMeta

COLUMNS = (("x", BIGINT), ("y", BIGINT), ("v", BIGINT), ("ts", TIMESTAMP))
STREAMS = {name: Stream(name, COLUMNS, "ts") for name in "abc"}
CHAIN = "SELECT a.v, c.v FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y"
NAME = "(a * b)[0.x=1.x]"
NOW = 9
KEPT = ("0.ts", "0.v", "0.x", "1.ts", "1.x", "1.y")


def bucket(store: str, lower: int, upper: int) -> BucketMeta:
    return BucketMeta(store, f"{store}{lower}", lower, upper, 0, 0, 1, 1, 1, 0, 0, (), (), True, ())


def settled(
    complete_from: int, kept_from: int | None, filled_from: int, *buckets: BucketMeta
) -> tuple[int, tuple[str, ...]]:
    """Since when the join of an unbounded query is kept, and the starts that may probe it in batch `NOW`."""
    live = LiveQuery("q", "q", compile_sql(CHAIN, STREAMS, timezone="UTC"), complete_from)
    join = KeptIntermediate(intermediate_of(live, ("a", "b"), STREAMS), 0, (Use("q", ("a", "b"), ("c",)),))
    columns = tuple(name for name, _ in COLUMNS)
    histories = {store: StoreHistory((Segment(0, columns, (), keeps_all=True),)) for store in "ab"}
    if kept_from is not None:
        histories[NAME] = StoreHistory((Segment(filled_from, KEPT, (), keeps_all=True),))
    state = EngineState(
        batch=NOW,
        buckets=buckets,
        histories=histories,
        kept_from={} if kept_from is None else {NAME: kept_from},
    )
    (kept,) = settle_intermediates((join,), (live,), STREAMS, state)
    return kept.complete_from, kept.uses[0].starts


ROWS = tuple(bucket(store, batch, batch) for store in "ab" for batch in range(NOW))


@pytest.mark.parametrize(
    ("complete_from", "kept_from", "filled_from", "starts"),
    [(0, 0, 5, ()), (0, 0, 0, ("c",)), (2, 2, 2, ("c",)), (2, 0, 0, ()), (0, 2, 2, ())],
    ids=["not filled", "filled", "filled with all it may use", "with more than it may use", "with less"],
)
def test_a_start_probes_what_holds_all_that_it_may_use_and_no_more(
    complete_from: int, kept_from: int, filled_from: int, starts: tuple[str, ...]
) -> None:
    assert settled(complete_from, kept_from, filled_from, *ROWS) == (kept_from, starts)


def test_a_new_join_holds_nothing_that_none_of_its_users_may_use() -> None:
    assert settled(3, None, 0, *ROWS)[0] == 3


def test_a_merged_bucket_that_may_be_used_only_in_part_keeps_a_start_waiting() -> None:
    rows = (bucket("a", 6, 6), bucket("b", 7, 7))
    assert settled(6, 0, 0, *rows, bucket(NAME, 6, 7))[1] == ("c",)
    assert settled(6, 0, 0, *rows, bucket(NAME, 4, 7))[1] == ()
