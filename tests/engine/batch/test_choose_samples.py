from __future__ import annotations

from dovetail.engine.batch.choose_samples import choose_samples
from dovetail.frontend.compile_sql import compile_sql
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, TIMESTAMP
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.observed import STALE_AFTER_BATCHES, BatchSeen, ObservedStats

STREAMS = {name: Stream(name, (("x", BIGINT), ("y", BIGINT), ("ts", TIMESTAMP)), "ts") for name in "abc"}
CHAIN = (
    "SELECT a.x FROM a JOIN b ON a.x = b.x AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 3 SECONDS "
    "JOIN c ON b.y = c.y"
)


def live(sql: str) -> LiveQuery:
    return LiveQuery("q", "q", compile_sql(sql, STREAMS, timezone="UTC"))


def counted(edge: str, batch: int) -> ObservedStats:
    return ObservedStats().folded(BatchSeen(batch, {Figure(Kind.MATCH, (edge,)): Tally(1, 10)}))


def test_joins_that_nobody_counts_are_asked_for() -> None:
    one, other = choose_samples((live(CHAIN),), StatsCatalog())
    assert (one.edge, one.a_store, one.b_store) == ("a.x=b.x", "a", "b")
    assert (one.lower_us, one.upper_us) == (-1_000_000, 3_000_000)
    assert (other.edge, other.lower_us, other.upper_us) == ("b.y=c.y", None, None)


def test_counted_and_given_joins_are_not() -> None:
    stats = StatsCatalog(key_match={"b.y=c.y": 0.5}).with_observed(counted("a.x=b.x", 4))
    assert choose_samples((live(CHAIN),), stats) == ()


def test_a_count_that_got_old_is_asked_for_again() -> None:
    observed = counted("a.x=b.x", 4)
    for batch in range(5, 5 + STALE_AFTER_BATCHES):
        observed = observed.folded(BatchSeen(batch, {Figure(Kind.BATCH_ROWS, ("a",)): Tally(1, 1)}))
    stats = StatsCatalog().with_observed(observed)
    assert [join.edge for join in choose_samples((live(CHAIN),), stats)] == ["a.x=b.x", "b.y=c.y"]


def test_a_join_of_two_needs_no_sample() -> None:
    assert choose_samples((live("SELECT a.x FROM a JOIN b ON a.x = b.x"),), StatsCatalog()) == ()


def test_bounds_that_contradict_each_other_are_not_sampled_and_leave_the_edge_to_others() -> None:
    never = CHAIN.replace("INTERVAL 3 SECONDS", "INTERVAL 3 SECONDS AND b.ts > a.ts + INTERVAL 9 SECONDS")
    assert [join.edge for join in choose_samples((live(never),), StatsCatalog())] == ["b.y=c.y"]
    edges = [join.edge for join in choose_samples((live(never), live(CHAIN)), StatsCatalog())]
    assert edges == ["a.x=b.x", "b.y=c.y"]
