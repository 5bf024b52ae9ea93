from __future__ import annotations

import numpy as np
import pytest

from dovetail.core.errors import EvaluationError
from dovetail.plan.query_limits import Found
from dovetail.plan.store_plan import IndexPlan
from dovetail.query.expression import Column
from dovetail.query.types import BIGINT
from dovetail.runtime.report import (
    KeyCount,
    MatchSample,
    MergedBuckets,
    QuerySets,
    SelectionCount,
    StepCount,
    StreamCount,
    TaskReport,
    UnitWork,
    count_keys,
)
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.manifest import ResultFile

BUCKET = BucketMeta("s", "p", 0, 3, 1, 1, 9, 8, 7, None, 5, ("k",), ("v > 1",), False, (("[k]", 9),))


def test_a_report_survives_the_way_to_the_driver() -> None:
    report = TaskReport(
        streams=[StreamCount("a", 3, 1, None)],
        steps=[StepCount("a#1", 1, 2, 3, copies=4)],
        work=[UnitWork(1, 2, 3, 4, 0.5)],
        selections=[SelectionCount("a", "v > 1", 9, 4)],
        query_sets=[QuerySets("a", 9, 8, [2], "7f01")],
        keys=[count_keys("a", IndexPlan((Column("row", "k", BIGINT),)), np.array([1, 1, 1 << 63], np.uint64), 2)],
        samples=[MatchSample("a.k=b.k", 1.5, 100.0, 0.25)],
        results=[ResultFile("q#1", "p", 1, 2)],
        merges=[MergedBuckets(BUCKET, ("x", "y"))],
        seconds_by_part={"hop 1": 0.5},
        found={"q#1": Found(pairs=7, results=3)},
    )
    report.fail({"q#1"}, EvaluationError("division by zero", hint="guard it"))
    assert TaskReport.from_bytes(report.to_bytes()) == report
    assert report.keys == [KeyCount("a", "[k]", 3, [2, 1], [], [], [1, 1 << 63])]


def test_the_first_failure_of_a_query_counts() -> None:
    report = TaskReport()
    report.fail({"q#1", "q#2"}, ValueError("first"))
    report.fail({"q#2", "q#3"}, ValueError("second"))
    assert [(failure.query, failure.error) for failure in report.failures] == [
        ("q#1", "first"),
        ("q#2", "first"),
        ("q#3", "second"),
    ]
    assert report.void_queries == {"q#1", "q#2", "q#3"}


def test_time_of_a_part_adds_up_also_when_it_fails() -> None:
    report = TaskReport()
    with report.timed("part"):
        pass
    first = report.seconds_by_part["part"]
    with pytest.raises(ValueError, match="broken"), report.timed("part"):
        raise ValueError("broken")
    assert report.seconds_by_part["part"] > first
