from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.engine.batch import choose_merges as module
from dovetail.engine.batch.choose_merges import choose_merges
from dovetail.plan.fill import FillPlan
from dovetail.plan.placement import Placements, even_placement
from dovetail.plan.probe_tree import ProbeNode, ProbeStep, ProbeTree
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import IndexPlan, Retention, StorePlan
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import TRUE
from dovetail.runtime.batch_task import MergeTask
from dovetail.store.bucket_file import BucketMeta

BUCKET = BucketMeta("s", "path", 0, 0, 0, 0, 10, 1, 1, None, None, ("k",), (), True, ())


def plan_of(stores: str = "s", first_batches: tuple[int, ...] = (), partitions: int = 1) -> SharedPlan:
    plans = tuple(StorePlan(name, name, None, None, ("k",), (TRUE,), (), Retention(None)) for name in stores)
    return SharedPlan(
        1, plans, (), Placements(even_placement(8, partitions)), tuple((f"q#{batch}", batch) for batch in first_batches)
    )


def buckets_of(levels: list[int], store: str = "s") -> list[BucketMeta]:
    """One bucket a batch, in order, with these levels."""
    return [
        replace(BUCKET, store=store, path=f"{store}{batch}", lower_batch=batch, upper_batch=batch, level=level)
        for batch, level in enumerate(levels)
    ]


def chosen(merges: tuple[MergeTask, ...]) -> list[list[int]]:
    return [[meta.lower_batch for meta in merge.buckets] for merge in merges]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([], []),
        ([0, 0, 0], []),
        ([0, 0, 0, 0], [[0, 1, 2, 3]]),
        ([0] * 6, [[0, 1, 2, 3, 4, 5]]),
        ([1, 0, 0, 0, 0], [[1, 2, 3, 4]]),
        ([1, 1, 1, 1, 0], [[0, 1, 2, 3]]),
        ([1, 1, 1, 1, 0, 0, 0, 0], [[4, 5, 6, 7]]),
        ([0, 0, 0, 0, 1, 1, 1, 1], [[0, 1, 2, 3]]),
        ([0, 0, 1, 0, 0], []),
    ],
)
def test_enough_neighbours_of_one_level_merge_the_lowest_first(levels: list[int], expected: list[list[int]]) -> None:
    assert chosen(choose_merges(plan_of(), buckets_of(levels))) == expected


def test_fewer_suffice_if_the_fanout_says_so() -> None:
    assert chosen(choose_merges(plan_of(), buckets_of([0, 0]), fanout=2)) == [[0, 1]]


def test_the_order_in_which_buckets_are_given_does_not_matter() -> None:
    assert chosen(choose_merges(plan_of(), buckets_of([0] * 5)[::-1])) == [[0, 1, 2, 3, 4]]


def test_other_layouts_are_no_neighbours() -> None:
    buckets = buckets_of([0] * 7)
    buckets[3] = replace(buckets[3], columns=("k", "v"))
    assert choose_merges(plan_of(), buckets) == ()
    assert chosen(choose_merges(plan_of(), buckets, fanout=3)) == [[4, 5, 6]]


@pytest.mark.parametrize(
    ("first_batches", "expected"),
    [((0,), [[0, 1, 2, 3, 4]]), ((1,), [[1, 2, 3, 4]]), ((2,), []), ((4,), [[0, 1, 2, 3]]), ((5,), [[0, 1, 2, 3, 4]])],
)
def test_no_bucket_straddles_a_query_s_first_batch(first_batches: tuple[int, ...], expected: list[list[int]]) -> None:
    assert chosen(choose_merges(plan_of(first_batches=first_batches), buckets_of([0] * 5))) == expected


def filling(driver: str, target: str, before_batch: int) -> FillPlan:
    step = ProbeStep(target, IndexPlan(()), (), Visibility.EARLIER, before_batch)
    return FillPlan("s", before_batch, ProbeTree(driver, (), (ProbeNode("n", 1, step, (), (), ()),)))


def test_what_a_fill_has_still_to_read_stays_as_it_is() -> None:
    buckets = [meta for store in "tu" for meta in buckets_of([0] * 8, store)]
    plan = replace(plan_of("stu"), fills=(filling("t", "u", 4),))
    assert chosen(choose_merges(plan_of("stu"), buckets)) == [list(range(8)), list(range(8))]
    assert chosen(choose_merges(plan, buckets)) == [[4, 5, 6, 7], [4, 5, 6, 7]]
    older = [meta for meta in buckets if meta.lower_batch < 4]
    assert [merge.store for merge in choose_merges(plan, older)] == ["u"]


def test_the_later_of_two_fills_decides_what_is_still_to_be_read() -> None:
    plan = replace(plan_of("stu"), fills=(filling("t", "u", 4), filling("t", "u", 2)))
    assert chosen(choose_merges(plan, buckets_of([0] * 6, "t"), fanout=2)) == [[4, 5]]


def test_many_splits_of_a_batch_merge_in_one_go() -> None:
    splits = [replace(BUCKET, path=f"{split}", split=split) for split in range(50)]
    (merge,) = choose_merges(plan_of(), splits)
    assert [meta.split for meta in merge.buckets] == list(range(50))


def test_splits_of_one_batch_never_straddle_themselves() -> None:
    splits = [replace(BUCKET, path=f"{split}", split=split, lower_batch=3, upper_batch=3) for split in range(4)]
    assert chosen(choose_merges(plan_of(first_batches=(3,)), splits)) == [[3, 3, 3, 3]]


def test_each_store_merges_for_itself_spread_over_the_partitions() -> None:
    buckets = [meta for store in "stu" for meta in buckets_of([0] * 4, store)]
    merges = choose_merges(plan_of("stu", partitions=2), buckets)
    assert [(merge.store, merge.partition) for merge in merges] == [("s", 0), ("t", 1), ("u", 0)]
    assert all({meta.store for meta in merge.buckets} == {merge.store} for merge in merges)


def test_a_store_that_the_plan_has_not_does_not_merge() -> None:
    assert choose_merges(plan_of("t"), buckets_of([0] * 4)) == ()


def test_merged_buckets_do_not_grow_past_what_one_string_array_holds() -> None:
    huge = [replace(meta, size_bytes=250 << 20) for meta in buckets_of([0] * 6)]
    assert chosen(choose_merges(plan_of(), huge)) == [[0, 1, 2, 3]]
    assert choose_merges(plan_of(), [replace(meta, size_bytes=300 << 20) for meta in huge]) == ()


def test_merged_buckets_do_not_grow_past_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MERGED_ROWS", 45)
    assert chosen(choose_merges(plan_of(), buckets_of([0] * 6))) == [[0, 1, 2, 3]]
    assert choose_merges(plan_of(), [replace(meta, rows=20) for meta in buckets_of([0] * 6)]) == ()


@given(st.lists(st.integers(0, 2), max_size=14), st.sets(st.integers(0, 14)), st.data())
def test_what_merges_could_always_be_one_bucket(
    levels: list[int], first_batches: set[int], data: st.DataObject
) -> None:
    buckets = [
        replace(meta, columns=("k",) if data.draw(st.booleans() | st.just(True)) else ("v",))
        for meta in buckets_of(levels)
    ]
    for merge in choose_merges(plan_of(first_batches=tuple(sorted(first_batches))), buckets, fanout=2):
        lower, upper = merge.buckets[0].lower_batch, merge.buckets[-1].upper_batch
        assert list(merge.buckets) == buckets[lower : upper + 1]
        assert len(merge.buckets) >= 2
        assert len({(meta.level, meta.layout) for meta in merge.buckets}) == 1
        assert not any(lower < batch <= upper for batch in first_batches)
