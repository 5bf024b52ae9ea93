from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.engine.control.coverage import SEGMENTS_KEPT, Expired, Segment, StoreHistory, complete_from
from dovetail.frontend.compile_sql import compile_sql
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.store_plan import Retention, StorePlan
from dovetail.query.expression import TRUE, Call, Column, Literal
from dovetail.query.stream import Stream
from dovetail.query.types import BOOLEAN, INT, TIMESTAMP
from dovetail.store.bucket_file import BucketMeta

STREAMS = {name: Stream(name, (("k", INT), ("v", INT), ("ts", TIMESTAMP)), "ts") for name in ("a", "b")}
JOIN = "SELECT a.k FROM a JOIN b ON a.k = b.k"
SECOND = 1_000_000
NOW = 10
BOTH = ("gt(row.v, 1:int)", "gt(row.v, 2:int)")
PLAIN = Segment(0, ("k", "ts"), (), True)
EVERYTHING = StoreHistory((Segment(0, ("k", "ts", "v"), (), True),))
BUCKET = BucketMeta("b", "path", 0, 0, 0, 0, 1, 1, 1, None, None, (), (), True, ())


def since(
    sql: str,
    b_history: StoreHistory,
    a_history: StoreHistory = EVERYTHING,
    buckets: tuple[BucketMeta, ...] = (),
    watermark_s: int = 0,
) -> int:
    live = LiveQuery("q#1", "q", compile_sql(sql, STREAMS))
    watermarks = dict.fromkeys(STREAMS, watermark_s * SECOND)
    return complete_from(live, NOW, STREAMS, {"a": a_history, "b": b_history}, buckets, watermarks)


def test_without_history_a_query_is_complete_from_its_own_batch() -> None:
    assert since(JOIN, StoreHistory()) == NOW


def test_a_store_that_always_kept_what_is_needed_gives_all_history() -> None:
    assert since(JOIN, StoreHistory((PLAIN,))) == 0


def test_the_youngest_of_the_stores_decides() -> None:
    younger = StoreHistory((replace(PLAIN, from_batch=4),))
    assert since(JOIN, StoreHistory((PLAIN,)), younger) == 4


@pytest.mark.parametrize(
    ("sql", "segments", "expected"),
    [
        ("SELECT b.v FROM a JOIN b ON a.k = b.k", (PLAIN,), NOW),
        ("SELECT b.v FROM a JOIN b ON a.k = b.k", (PLAIN, Segment(6, ("k", "ts", "v"), (), True)), 6),
        # Then a batch without the column, and the older part is of no use.
        (
            "SELECT b.v FROM a JOIN b ON a.k = b.k",
            (
                Segment(0, ("k", "ts", "v"), (), True),
                replace(PLAIN, from_batch=3),
                Segment(6, ("k", "ts", "v"), (), True),
            ),
            6,
        ),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k AND b.v < a.v", (PLAIN,), NOW),
        # A column that only the selection reads is no longer needed where the selection was asked on arrival.
        (f"{JOIN} WHERE b.v > 1", (Segment(2, ("k", "ts"), ("gt(row.v, 1:int)",), False),), 2),
        (f"{JOIN} WHERE b.v > 1", (Segment(2, ("k", "ts"), ("gt(row.v, 2:int)",), False),), NOW),
        (f"{JOIN} WHERE b.v > 1", (Segment(2, ("k", "ts", "v"), ("gt(row.v, 2:int)",), False),), NOW),
        # All rows are there, so it can be asked now, if its column is there, too.
        (f"{JOIN} WHERE b.v > 1", (Segment(2, ("k", "ts", "v"), (), True),), 2),
        (f"{JOIN} WHERE b.v > 1", (Segment(2, ("k", "ts"), (), True),), NOW),
        (f"{JOIN} WHERE b.k > 1", (PLAIN,), 0),
        # The rows of one or the other are there if those of both are.
        (f"{JOIN} WHERE b.v > 1 OR b.v > 2", (Segment(2, ("k", "ts", "v"), BOTH, False),), 2),
        (f"{JOIN} WHERE b.v > 1 OR b.v > 2", (Segment(2, ("k", "ts"), BOTH, False),), NOW),
        (f"{JOIN} WHERE b.v > 1 OR b.v > 2", (Segment(2, ("k", "ts", "v"), BOTH[:1], False),), NOW),
        (f"{JOIN} WHERE b.v > 1 OR b.v > 2", (Segment(2, ("k", "ts", "v"), (), True),), 2),
        # Selected rows are not all rows.
        (JOIN, (Segment(0, ("k", "ts"), ("gt(row.v, 1:int)",), False),), NOW),
        (JOIN, (Segment(0, ("k", "ts"), ("gt(row.v, 1:int)",), False), replace(PLAIN, from_batch=7)), 7),
    ],
)
def test_history_counts_as_far_back_as_it_kept_columns_and_rows(
    sql: str, segments: tuple[Segment, ...], expected: int
) -> None:
    assert since(sql, StoreHistory(segments)) == expected


@pytest.mark.parametrize(
    ("sql", "watermark_s", "expected"),
    [
        (JOIN, 100, 4),  # full history wants what is gone
        (f"{JOIN} WITHIN 5 SECONDS", 15, 4),  # a row of second 10 could still meet one of second 15
        (f"{JOIN} WITHIN 5 SECONDS", 16, 0),
        (f"{JOIN} WITHIN 60 SECONDS", 16, 4),
    ],
)
def test_expired_rows_matter_only_if_the_query_could_still_join_them(sql: str, watermark_s: int, expected: int) -> None:
    history = StoreHistory((PLAIN,), (Expired(3, 10 * SECOND),))
    assert since(sql, history, watermark_s=watermark_s) == expected


def test_expired_rows_without_times_matter_to_full_history_only() -> None:
    history = StoreHistory((PLAIN,), (Expired(3, None),))
    assert since(JOIN, history) == 4
    assert since(f"{JOIN} WITHIN 5 SECONDS", history) == 0


def test_a_merged_bucket_cannot_be_used_in_part() -> None:
    history = StoreHistory((replace(PLAIN, from_batch=3),))
    merged = replace(BUCKET, lower_batch=2, upper_batch=5)
    assert since(JOIN, history, buckets=(merged,)) == 6
    assert since(JOIN, history, buckets=(replace(merged, upper_batch=3),)) == 4
    assert since(JOIN, history, buckets=(replace(merged, upper_batch=2),)) == 3
    assert since(JOIN, history, buckets=(replace(merged, lower_batch=3),)) == 3
    assert since(JOIN, history, buckets=(replace(merged, store="other"),)) == 3


def test_buckets_that_overlap_push_each_other() -> None:
    history = StoreHistory((replace(PLAIN, from_batch=3),))
    chain = (
        replace(BUCKET, store="a", lower_batch=5, upper_batch=8),
        replace(BUCKET, lower_batch=2, upper_batch=5),
    )
    assert since(JOIN, history, buckets=chain) == 9


STORE = StorePlan("b", "b", None, "ts", ("k", "ts"), (TRUE,), (), Retention(None))


def test_a_history_grows_only_when_what_is_kept_changes() -> None:
    first = StoreHistory().continued(STORE, 0)
    assert first.segments == (PLAIN,)
    assert first.continued(STORE, 1) is first
    wider = first.continued(replace(STORE, columns=("k", "ts", "v")), 2)
    assert [segment.from_batch for segment in wider.segments] == [0, 2]
    selection = Call("gt", (Column("row", "v", INT), Literal(1, INT)), BOOLEAN)
    selected = wider.continued(replace(STORE, selections=(selection,)), 3)
    assert selected.segments[-1] == Segment(3, ("k", "ts"), ("gt(row.v, 1:int)",), False)


def test_a_history_survives_json() -> None:
    history = StoreHistory((PLAIN, Segment(3, ("k",), ("x",), False)), (Expired(3, None), Expired(1, 7)))
    assert StoreHistory.from_json(history.to_json()) == history


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30) | st.none()), max_size=8),
    st.integers(0, 40),
    st.sampled_from([JOIN, f"{JOIN} WITHIN 5 SECONDS", f"{JOIN} WITHIN 20 SECONDS"]),
)
def test_forgetting_outdone_entries_changes_no_answer(
    gone: list[tuple[int, int | None]], watermark_s: int, sql: str
) -> None:
    entries = [(batch, None if time is None else time * SECOND) for batch, time in gone]
    whole = StoreHistory((PLAIN,), tuple(Expired(batch, time) for batch, time in entries))
    short = StoreHistory((PLAIN,))
    for batch, time in entries:
        short = short.with_expired([replace(BUCKET, upper_batch=batch, max_time_us=time)])
    assert len(short.expired) <= len(whole.expired)
    assert since(sql, short, watermark_s=watermark_s) == since(sql, whole, watermark_s=watermark_s)


def test_old_segments_of_which_no_row_is_left_go_when_there_are_many() -> None:
    many = StoreHistory(tuple(replace(PLAIN, from_batch=batch) for batch in range(SEGMENTS_KEPT + 10)))
    assert [segment.from_batch for segment in many.since(5).segments][:2] == [5, 6]
    assert len(many.since(SEGMENTS_KEPT + 9).segments) == SEGMENTS_KEPT
    few = StoreHistory(many.segments[:SEGMENTS_KEPT])
    assert few.since(SEGMENTS_KEPT) is few
