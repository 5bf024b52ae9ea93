"""Random scenarios find bugs that are planted where kept joins are filled a few rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from dovetail.engine.batch import make_task, next_state
from dovetail.engine.planning.fill import Fill, advance_fills
from dovetail.plan.probe_tree import ProbeNode
from dovetail.runtime.hop_operator import _Hop
from dovetail.runtime.probe.probe_operator import ProbeOperator
from dovetail.store.bucket_file import BucketMeta
from tests.support.planted_bugs import Bug, found_at

KINDS = ("fills",)


def first_part_is_skipped(whole: Callable[[_Hop], None]) -> Callable[[_Hop], None]:
    def probe_fills(self: _Hop) -> None:
        task = self._task
        chunks = tuple(replace(chunk, parts=chunk.parts[1:]) for chunk in task.fill_chunks)
        self._task = replace(task, fill_chunks=chunks)
        whole(self)
        self._task = task

    return probe_fills


def sees_the_first_batch(whole: Callable[..., Iterator[int]]) -> Callable[..., Iterator[int]]:
    def visible(self: ProbeOperator, node: ProbeNode) -> Iterator[int]:
        before = node.step.before_batch
        if before is not None:
            node = replace(node, step=replace(node.step, before_batch=before + 1))
        return whole(self, node)

    return visible


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
    Bug("a part is skipped", _Hop, "probe_fills", first_part_is_skipped, KINDS, known=3),
    Bug("rows are joined before", ProbeOperator, "_visible", sees_the_first_batch, KINDS, known=4),
    Bug("a fill is ready too early", next_state, "advance_fills", is_ready_a_bucket_early, KINDS, known=3),
    Bug("buckets are merged in the middle", make_task, "choose_merges", merges_do_not_care, KINDS, known=3),
    Bug("rows are joined twice", Fill, "remaining", starts_over, KINDS, known=3),
]


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    assert found_at(bug) is not None
