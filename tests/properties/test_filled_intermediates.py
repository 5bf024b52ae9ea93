"""Random plans that keep joins, drop them, and fill them a few rows at a time: the answers are those of batch SQL.

DOVETAIL_CASES sets how many, DOVETAIL_SEED where they begin, as in `test_streamed_answers`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dovetail.engine.batch import make_task, next_state, settle_batch
from dovetail.engine.planning.fill import Fill, advance_fills
from dovetail.plan.probe_tree import ProbeNode
from dovetail.runtime.hop_operator import _Hop
from dovetail.runtime.probe.probe_operator import ProbeOperator
from dovetail.store.bucket_file import BucketMeta
from tests.support.asserts import check_run, check_seeds, failure_of
from tests.support.faults.runs import random_faults, run_with_faults
from tests.support.generators.chain_cases import random_chain_case

CASES = int(os.environ.get("DOVETAIL_CASES", "600")) // 10
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
CHUNKS = 10
SEEDS_DIR = Path(__file__).parent.parent / "seeds"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_answers_do_not_depend_on_fills(chunk: int) -> None:
    check_seeds(range(FIRST_SEED + chunk, FIRST_SEED + CASES, CHUNKS), random_chain_case, SEEDS_DIR)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_faults_in_the_middle_of_a_fill_leave_the_answers_exact(tmp_path: Path, chunk: int) -> None:
    for seed in range(FIRST_SEED + chunk, FIRST_SEED + CASES // 4, CHUNKS):
        case = random_chain_case(seed)
        faults = random_faults(Random(seed), len(case.batches))
        try:
            check_run(case, run_with_faults(case, tmp_path / str(seed), faults))
        except Exception as error:
            raise AssertionError(f"seed {seed} with {faults}: {error}") from error


def test_cases_fill_and_use_what_they_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {"chunks": 0, "finished": 0, "probes": 0}
    filled: set[str] = set()

    def spy(before: Any, plan: Any, streams: Any, report: Any, written: Any, chunks: Any, *limits: Any) -> Any:
        state, draft = next_state.next_state(before, plan, streams, report, written, chunks, *limits)
        filled.intersection_update(before.kept_from)
        seen["chunks"] += sum(chunk.rows > 0 for chunk in chunks)
        targets = [node.step.target for tree in plan.trees for node in tree.walk()]
        seen["probes"] += sum(target in filled for target in targets)
        finished = set(before.fills) - set(state.fills)
        seen["finished"] += len(finished)
        filled.update(finished)
        return state, draft

    monkeypatch.setattr(settle_batch, "next_state", spy)
    for seed in range(12):
        filled.clear()
        check_seeds([seed], random_chain_case)
    assert seen["chunks"] >= 20, seen
    assert seen["finished"] >= 5, seen
    assert seen["probes"] >= 10, seen


def _first_part_is_skipped(whole: Callable[[_Hop], None]) -> Callable[[_Hop], None]:
    def probe_fills(self: _Hop) -> None:
        task = self._task
        chunks = tuple(replace(chunk, parts=chunk.parts[1:]) for chunk in task.fill_chunks)
        self._task = replace(task, fill_chunks=chunks)
        whole(self)
        self._task = task

    return probe_fills


def _sees_the_first_batch(whole: Callable[..., Iterator[int]]) -> Callable[..., Iterator[int]]:
    def visible(self: ProbeOperator, node: ProbeNode) -> Iterator[int]:
        before = node.step.before_batch
        if before is not None:
            node = replace(node, step=replace(node.step, before_batch=before + 1))
        return whole(self, node)

    return visible


def _is_ready_a_bucket_early(_whole: object) -> Callable[..., Any]:
    def advanced(fills: Any, chunks: Any, kept_from: Any, before: Any, after: Any, histories: Any, failed: Any) -> Any:
        under_way, known = advance_fills(fills, chunks, kept_from, before, after, histories, failed)
        for store, fill in under_way.items():
            if len(fill.remaining(kept_from[store], after)) == 1:
                known[store] = known[store].with_filled(kept_from[store])
        return under_way, known

    return advanced


def _merges_do_not_care(whole: Callable[..., Any]) -> Callable[..., Any]:
    return lambda plan, buckets, fanout: whole(replace(plan, fills=()), buckets, fanout)


def _starts_over(whole: Callable[..., Any]) -> Callable[..., Any]:
    """The rows of a bucket that is read in parts are joined again with every part but the first."""

    def remaining(self: Fill, since: int, buckets: Iterable[BucketMeta]) -> list[Any]:
        return [replace(part, lower_row=0) for part in whole(self, since, buckets)]

    return remaining


@pytest.mark.parametrize(
    ("owner", "name", "bug"),
    [
        (_Hop, "probe_fills", _first_part_is_skipped),
        (ProbeOperator, "_visible", _sees_the_first_batch),
        (next_state, "advance_fills", _is_ready_a_bucket_early),
        (make_task, "choose_merges", _merges_do_not_care),
        (Fill, "remaining", _starts_over),
    ],
    ids=["a part is skipped", "rows joined before", "ready too early", "merged in the middle", "joined twice"],
)
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, bug: Callable[..., Any]
) -> None:
    monkeypatch.setattr(owner, name, bug(getattr(owner, name)))
    assert "CaseFailed" in (failure_of(random_chain_case(seed)) for seed in range(60))
