"""Random scenarios find bugs that are planted where aggregates are had without their joined rows (D4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dovetail.kernels.fold.fold_runs import Runs
from dovetail.query.expression import Column
from dovetail.query.join_query import PRESENT
from dovetail.runtime.factorized import foldable_rows, walk
from dovetail.runtime.factorized.walk import Walk, WalkedRows
from dovetail.runtime.probe.mapped_bucket import MappedBucket
from tests.support.planted_bugs import Bug, found_at

KINDS = ("groups",)


def sums_one_entry_late(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda prefix, runs: right(prefix, Runs(np.minimum(runs.begins + 1, runs.ends), runs.ends))


def runs_one_entry_short(right: Callable[..., Runs]) -> Callable[..., Runs]:
    def found(*args: Any) -> Runs:
        runs = right(*args)
        return Runs(runs.begins, np.maximum(runs.ends - 1, runs.begins))

    return found


def bounds_a_second_wider(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda times, lower, upper: right(times, lower - 1_000_000, upper + 1_000_000)


BUGS = [
    Bug("a prefix is off by one", foldable_rows, "sums_of_runs", sums_one_entry_late, KINDS, known=15),
    Bug("a run is too short", foldable_rows, "find_runs", runs_one_entry_short, KINDS, known=15),
    Bug("bounds are wider", walk, "accepted_times", bounds_a_second_wider, KINDS, known=19),
    Bug(
        "weights are 1",
        WalkedRows,
        "weights",
        lambda _right: property(lambda self: np.ones(len(self), np.int64)),
        KINDS,
        known=19,
    ),
    Bug(
        "nothing is folded",
        Walk,
        "arguments",
        lambda _right: property(lambda self: {each.name: each.expression for each in self.emit.output[:0]}),
        KINDS,
        known=6,
    ),
]


def present_is_unknown(right: Callable[..., Any]) -> Callable[..., Any]:
    def values(self: MappedBucket, column: Column, rows: Any, timezone: str) -> Any:
        return pa.nulls(len(rows), pa.bool_()) if column.name == PRESENT else right(self, column, rows, timezone)

    return values


BUGS.append(
    Bug(
        "what a folded side computes is NULL",
        MappedBucket,
        "values",
        present_is_unknown,
        ("groups of outer joins",),
        known=22,
    )
)


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    assert found_at(bug) is not None
