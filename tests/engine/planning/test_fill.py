from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.engine.control.coverage import Segment, StoreHistory
from dovetail.engine.planning.fill import Fill, advance_fills, choose_chunks
from dovetail.engine.state import EngineState
from dovetail.plan.fill import ChunkPart, FillChunk, FillPlan, filled_by
from dovetail.plan.probe_tree import Leg, ProbeNode, ProbeStep, ProbeTree
from dovetail.plan.store_plan import IndexPlan
from dovetail.plan.visibility import Visibility
from dovetail.store.bucket_file import BucketMeta

STORE = "(a * b)[0.k=1.k]"
BUCKET = BucketMeta("a", "", 0, 0, 0, 0, 10, 1, 1, None, None, ("k",), (), True, ())
FILL = Fill("a", before_batch=4)
HISTORY = StoreHistory((Segment(4, ("0.k",), (), keeps_all=True),))


def bucket(lower: int, upper: int, rows: int = 10, split: int = 0, store: str = "a") -> BucketMeta:
    path = f"{store}{lower}.{split}"
    return replace(BUCKET, store=store, path=path, lower_batch=lower, upper_batch=upper, split=split, rows=rows)


BUCKETS = (bucket(0, 1), bucket(2, 2), bucket(3, 3, rows=5), bucket(4, 4), bucket(2, 2, store="b"))


def parts(chunks: tuple[FillChunk, ...]) -> list[tuple[str, int, int]]:
    return [(part.bucket, part.lower_row, part.upper_row) for chunk in chunks for part in chunk.parts]


def test_older_rows_of_the_driver_remain_the_newest_first() -> None:
    assert [part.bucket for part in FILL.remaining(0, BUCKETS)] == ["a3.0", "a2.0", "a0.0"]
    assert [part.bucket for part in FILL.remaining(2, BUCKETS)] == ["a3.0", "a2.0"]


def test_a_bucket_that_straddles_either_end_is_not_read() -> None:
    assert FILL.remaining(1, [bucket(0, 1), bucket(3, 4)]) == []


def test_a_chunk_has_no_more_rows_than_the_budget() -> None:
    (chunk,) = choose_chunks({STORE: FILL}, {STORE: 0}, BUCKETS, 8)
    assert parts((chunk,)) == [("a3.0", 0, 5), ("a2.0", 0, 3)]
    advanced = FILL.advanced(chunk, BUCKETS)
    assert advanced.position == (2, 0, 3)
    (following,) = choose_chunks({STORE: advanced}, {STORE: 0}, BUCKETS, 8)
    assert parts((following,)) == [("a2.0", 3, 10), ("a0.0", 0, 1)]


def test_fills_share_a_batch_s_budget() -> None:
    other = Fill("b", before_batch=4)
    chunks = choose_chunks({STORE: FILL, "other": other}, {STORE: 3, "other": 0}, BUCKETS, 8)
    assert parts(chunks) == [("a3.0", 0, 5), ("b2.0", 0, 3)]


def test_what_died_meanwhile_is_left_out() -> None:
    advanced = replace(FILL, position=(3, 0, 5))
    assert [part.bucket for part in advanced.remaining(0, BUCKETS[1:])] == ["a2.0"]
    assert replace(FILL, position=(2, 0, 4)).remaining(0, BUCKETS[2:]) == []


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(1, 9)), unique_by=lambda b: b[:2]),
    st.integers(1, 12),
)
def test_chunks_hold_every_row_once(made: list[tuple[int, int, int]], budget: int) -> None:
    buckets = tuple(bucket(batch, batch, rows, split) for batch, split, rows in made)
    fill, read = replace(FILL, before_batch=5), []
    while fill.remaining(1, buckets):
        (chunk,) = choose_chunks({STORE: fill}, {STORE: 1}, buckets, budget)
        assert 0 < chunk.rows <= budget
        read += [(part.bucket, row) for part in chunk.parts for row in range(part.lower_row, part.upper_row)]
        fill = Fill.from_json(json.loads(json.dumps(fill.advanced(chunk, buckets).to_json())))
    assert sorted(read) == sorted((m.path, row) for m in buckets if 1 <= m.lower_batch < 5 for row in range(m.rows))


def test_a_filled_store_holds_all_since_its_first_batch() -> None:
    chunks = choose_chunks({STORE: FILL}, {STORE: 1}, BUCKETS, 100)
    fills, histories = advance_fills({STORE: FILL}, chunks, {STORE: 1}, BUCKETS, BUCKETS, {STORE: HISTORY}, ())
    assert fills == {}
    assert [segment.from_batch for segment in histories[STORE].segments] == [1]


def test_a_store_that_is_filled_in_part_holds_no_more_than_before() -> None:
    chunks = choose_chunks({STORE: FILL}, {STORE: 0}, BUCKETS, 24)
    fills, histories = advance_fills({STORE: FILL}, chunks, {STORE: 0}, BUCKETS, BUCKETS, {STORE: HISTORY}, ())
    assert fills == {STORE: replace(FILL, position=(0, 0, 9))}
    assert histories == {STORE: HISTORY}


def test_a_fill_that_fails_is_given_up() -> None:
    chunks = choose_chunks({STORE: FILL}, {STORE: 0}, BUCKETS, 100)
    given_up = advance_fills({STORE: FILL}, chunks, {STORE: 0}, BUCKETS, BUCKETS, {STORE: HISTORY}, {filled_by(STORE)})
    assert given_up == ({}, {STORE: HISTORY})


def test_fills_survive_a_restart() -> None:
    state = EngineState(batch=4, fills={STORE: replace(FILL, position=(2, 0, 3)), "other": FILL})
    stored = json.loads(json.dumps(state.to_stored().engine))
    again = EngineState.from_stored(replace(state.to_stored(), engine=stored))
    assert again.fills == state.fills


@pytest.mark.parametrize("before_batch", [None, 5])
def test_a_fill_sees_no_row_that_its_maintaining_query_joins(before_batch: int | None) -> None:
    step = ProbeStep("b", IndexPlan(()), (), Visibility.EARLIER, before_batch)
    node = ProbeNode("b#1", 1, step, (), (), ())
    with pytest.raises(ValueError, match="its maintaining query joins"):
        FillPlan(STORE, 4, ProbeTree("a", (Leg("fill", 0),), (node,)))


def test_a_part_counts_its_rows() -> None:
    assert FillChunk(STORE, (ChunkPart("x", 2, 5), ChunkPart("y", 0, 1))).rows == 4
