"""Random scenarios find bugs that are planted where kept joins are filled a few rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.engine.batch import make_task, next_state
from dovetail.engine.planning.fill import Fill, advance_fills
from dovetail.kernels.match.match_hop import NodeArrays
from dovetail.lowering import lower_plan
from dovetail.lowering.node_arrays import NEVER
from dovetail.runtime.hop_operator import _Hop
from dovetail.store.bucket_file import BucketMeta
from tests.support.planted_bugs import Bug, found_at

KINDS = ("fills",)


Chunks = dict[str, list[tuple[int, int, int]]]


def first_part_is_skipped(whole: Callable[[_Hop], Chunks]) -> Callable[[_Hop], Chunks]:
    return lambda hop: {store: parts[1:] for store, parts in whole(hop).items()}


def sees_the_first_batch(whole: Callable[..., NodeArrays]) -> Callable[..., NodeArrays]:
    def arrays(*given: Any) -> NodeArrays:
        right = whole(*given)
        return right._replace(before_batch=np.where(right.before_batch < NEVER, right.before_batch + 1, NEVER))

    return arrays


def is_ready_a_bucket_early(_whole: object) -> Callable[..., Any]:
    def advanced(fills: Any, chunks: Any, kept_from: Any, before: Any, after: Any, histories: Any, failed: Any) -> Any:
        under_way, known = advance_fills(fills, chunks, kept_from, before, after, histories, failed)
        for store, fill in under_way.items():
            if len(fill.remaining(kept_from[store], after)) == 1:
                known[store] = known[store].with_filled(kept_from[store])
        return under_way, known

    return advanced


def merges_do_not_care(whole: Callable[..., Any]) -> Callable[..., Any]:
    return lambda plan, buckets, fanout: whole(replace(plan, fills=()), buckets, fanout)


def starts_over(whole: Callable[..., Any]) -> Callable[..., Any]:
    """The rows of a bucket that is read in parts are joined again with every part but the first."""

    def remaining(self: Fill, since: int, buckets: Iterable[BucketMeta]) -> list[Any]:
        return [replace(part, lower_row=0) for part in whole(self, since, buckets)]

    return remaining


BUGS = [
    Bug("a part is skipped", _Hop, "_chunks", first_part_is_skipped, KINDS, known=3),
    Bug("rows are joined before", lower_plan, "node_arrays", sees_the_first_batch, KINDS, known=4),
    Bug("a fill is ready too early", next_state, "advance_fills", is_ready_a_bucket_early, KINDS, known=3),
    Bug("buckets are merged in the middle", make_task, "choose_merges", merges_do_not_care, KINDS, known=3),
    Bug("rows are joined twice", Fill, "remaining", starts_over, KINDS, known=3),
]


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    assert found_at(bug) is not None
