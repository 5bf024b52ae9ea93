from __future__ import annotations

from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.passes.choose_statistics import replan_reasons
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.observed import BatchSeen, ObservedStats

STREAMS = {name: Stream(name, (("x", BIGINT), ("y", BIGINT))) for name in "abc"}
QUERY = LiveQuery(
    "q", "q", compile_sql("SELECT a.x FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y", STREAMS, timezone="UTC")
)


def stats(**counts: float) -> StatsCatalog:
    tallies = {Figure(Kind[name.split("__")[0]], (name.split("__")[1],)): Tally(n, 1) for name, n in counts.items()}
    return StatsCatalog().with_observed(ObservedStats().folded(BatchSeen(1, tallies)))


def test_the_first_counts_are_a_reason_of_their_own() -> None:
    assert replan_reasons(StatsCatalog(), stats(BATCH_ROWS__a=100), [QUERY]) == (
        "the data were counted for the first time",
    )
    assert replan_reasons(StatsCatalog(), StatsCatalog(), [QUERY]) == ()


def test_what_planners_look_at_must_double() -> None:
    (reason,) = replan_reasons(stats(BATCH_ROWS__a=1000), stats(BATCH_ROWS__a=3000), [QUERY])
    assert reason == "rows of a a batch: 1,000 (counted) became 3,000 (counted)"
    assert replan_reasons(stats(BATCH_ROWS__a=1000), stats(BATCH_ROWS__a=1900), [QUERY]) == ()
    assert replan_reasons(stats(STORED_ROWS__a=1000), stats(STORED_ROWS__a=9000), [QUERY]) == ()


def test_an_assumption_that_turns_out_wrong_is_a_reason() -> None:
    before = stats(BATCH_ROWS__a=1000)
    now = before.with_observed(before.observed.folded(BatchSeen(2, {Figure(Kind.MATCH, ("a.x=b.x",)): Tally(30, 100)})))
    (reason,) = replan_reasons(before, now, [QUERY])
    assert "a.x=b.x: 1e-05 (assumed) became 0.3 (counted)" in reason
    assert replan_reasons(before, now, []) == (), "nobody joins so"
