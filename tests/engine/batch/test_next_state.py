from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.core.errors import StoreError
from dovetail.engine.batch.next_state import next_state
from dovetail.engine.batch.read_messages import check_written
from dovetail.engine.control.coverage import Expired, StoreHistory
from dovetail.engine.control.registry import QueryRecord, QueryState, Registry
from dovetail.engine.state import EngineState
from dovetail.plan.placement import Placements, even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import Retention, StorePlan
from dovetail.query.expression import TRUE
from dovetail.query.stream import Stream
from dovetail.query.types import TIMESTAMP
from dovetail.runtime.report import MergedBuckets, QueryFailure, StreamCount, TaskReport
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.manifest import ResultPart

STREAMS = {name: Stream(name, (("ts", TIMESTAMP),), "ts", lateness_us=2) for name in ("a", "b")}
BUCKET = BucketMeta("a", "a0", 0, 0, 0, 0, 10, 1, 1, 0, 10, ("ts",), (), True, ())
WRITTEN = replace(BUCKET, path="a7", lower_batch=7, upper_batch=7, max_time_us=20)


def plan_of(retention: Retention) -> SharedPlan:
    store = StorePlan("a", "a", None, "ts", ("ts",), (TRUE,), (), retention)
    return SharedPlan(1, (store,), (), Placements(even_placement(2, 1)), ())


BEFORE = EngineState(
    batch=7,
    registry=Registry(tuple(QueryRecord(f"{name}#1", name, "", QueryState.RUNNING, 0, 0) for name in ("good", "bad"))),
    max_time_us_by_stream={"b": 17},
    buckets=(BUCKET,),
)
KEEP_5 = plan_of(Retention((("b", 5),)))


@pytest.mark.parametrize(("newest_us", "is_expired"), [(17, False), (18, True)])
def test_a_bucket_goes_when_the_watermark_has_passed_its_last_partner(newest_us: int, is_expired: bool) -> None:
    # Its largest time is 10, partners come until 15, and rows of b may be 2 late.
    report = TaskReport(streams=[StreamCount("b", 1, 0, newest_us)])
    state, draft = next_state(BEFORE, KEEP_5, STREAMS, report, [WRITTEN])
    assert [meta.path for meta in state.buckets] == (["a7"] if is_expired else ["a0", "a7"])
    assert draft.dead_paths == (("a0",) if is_expired else ())
    assert state.histories["a"].expired == ((Expired(0, 10),) if is_expired else ())


def test_a_batch_that_brings_only_older_rows_moves_no_watermark_back() -> None:
    report = TaskReport(streams=[StreamCount("b", 1, 0, 3), StreamCount("a", 1, 0, 20), StreamCount("a", 1, 0, None)])
    state, _ = next_state(BEFORE, KEEP_5, STREAMS, report, [])
    assert state.max_time_us_by_stream == {"a": 20, "b": 17}
    assert state.watermark_us_by_stream(STREAMS) == {"a": 18, "b": 15}


def test_an_unbounded_store_loses_nothing() -> None:
    report = TaskReport(streams=[StreamCount("b", 1, 0, 10**9)])
    state, draft = next_state(BEFORE, plan_of(Retention(None)), STREAMS, report, [WRITTEN])
    assert len(state.buckets) == 2
    assert draft.dead_paths == ()


def test_a_store_that_no_query_uses_goes_with_its_history() -> None:
    empty = SharedPlan(2, (), (), Placements(even_placement(2, 1)), ())
    before = replace(BEFORE, histories={"a": StoreHistory()})
    state, draft = next_state(before, empty, STREAMS, TaskReport(), [])
    assert (state.buckets, dict(state.histories), draft.dead_paths) == ((), {}, ("a0",))


def test_merged_buckets_take_the_place_of_those_they_replace() -> None:
    merged = replace(BUCKET, path="merged", upper_batch=6)
    report = TaskReport(merges=[MergedBuckets(merged, ("a0",))])
    state, draft = next_state(BEFORE, KEEP_5, STREAMS, report, [WRITTEN])
    assert [meta.path for meta in state.buckets] == ["merged", "a7"]
    assert draft.dead_paths == ("a0",)


def test_a_failed_query_is_quarantined_and_its_files_of_this_batch_are_void() -> None:
    results = [ResultPart("good#1", "g", 3, 1), ResultPart("good#1", "both", 4, 1, None, 0)]
    results += [ResultPart("bad#1", "b", 5, 1), ResultPart("bad#1", "both", 5, 1, None, 1)]
    report = TaskReport(results=results, failures=[QueryFailure("bad#1", "division by zero")])
    state, draft = next_state(BEFORE, KEEP_5, STREAMS, report, [])
    good, bad = state.registry.records
    assert (good.state, good.total_rows) == (QueryState.RUNNING, 7)
    assert (bad.state, bad.error, bad.total_rows) == (QueryState.QUARANTINED, "division by zero", 0)
    assert [(result.query, result.path) for result in draft.results] == [("good#1", "g"), ("good#1", "both")]
    # A file that also has answers of others stays.
    assert draft.dead_paths == ("b",)


def test_the_state_survives_storage() -> None:
    report = TaskReport(streams=[StreamCount("b", 1, 0, 18)], failures=[QueryFailure("bad#1", "x")])
    state, draft = next_state(BEFORE, KEEP_5, STREAMS, report, [WRITTEN])
    assert EngineState.from_stored(draft.state) == state


def test_every_partition_reports_a_bucket_and_it_counts_once() -> None:
    other = replace(WRITTEN, split=1, path="a7-1")
    assert check_written([other, WRITTEN, WRITTEN, other]) == (WRITTEN, other)


def test_two_attempts_of_one_split_are_refused() -> None:
    with pytest.raises(StoreError, match="two attempts: a7 and a7-again"):
        check_written([WRITTEN, replace(WRITTEN, path="a7-again")])
