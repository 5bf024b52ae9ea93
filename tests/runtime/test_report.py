from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pytest

from dovetail.core.errors import EvaluationError
from dovetail.plan.query_limits import BatchLimits, Found, QueryLimits
from dovetail.plan.store_plan import IndexPlan
from dovetail.query.expression import Column
from dovetail.query.types import BIGINT
from dovetail.runtime.entries import Entries
from dovetail.runtime.report import (
    BadCount,
    GroupCount,
    KeyCount,
    KeyGroups,
    MatchSample,
    MergedBuckets,
    QuerySets,
    RetriedFile,
    SelectionCount,
    ShippedCount,
    Shuffled,
    StepCount,
    StreamCount,
    TaskReport,
    UnitWork,
    UnreadFile,
    count_keys,
)
from dovetail.runtime.report_fields import rules_of
from dovetail.store.bad_rows import BadFile
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.manifest import ResultPart

BUCKET = BucketMeta("s", "p", 0, 3, 1, 1, 9, 8, 7, None, 5, ("k",), ("v > 1",), False, (("[k]", 9),))


def full_report() -> TaskReport:
    """With something in every field."""
    keys = count_keys("a", IndexPlan((Column("row", "k", BIGINT),)), np.array([1, 1, 1 << 63], np.uint64), 2)
    report = TaskReport(
        streams=[StreamCount("a", 3, 1, None)],
        bad_rows=[BadCount("a", "too far ahead", 2, "ts is 2999-01-01")],
        bad_files=[BadFile("a", "p", 3, 2, 900, 12, unread="file:/x")],
        retried=[RetriedFile("p", ["k"])],
        unread=[UnreadFile("a", "file:/x")],
        steps=Entries(StepCount, [StepCount("a#1", 1, 2, 3, copies=4)]),
        work=[UnitWork(1, 2, 3, 4, 0.5)],
        selections=Entries(SelectionCount, [SelectionCount("a", "v > 1", 9, 4)]),
        query_sets=[QuerySets("a", 9, 8, [2], "7f01")],
        keys=[keys],
        key_groups=[KeyGroups("a", 9, 2, ["[k]"], "AAAA")],
        samples=[MatchSample("a.k=b.k", 1.5, 100.0, 0.25)],
        results=[ResultPart("q#1", "p", 1, 2)],
        left_out=["q#4"],
        merges=[MergedBuckets(BUCKET, ("x", "y"))],
        groups=[GroupCount("g", 5, 4)],
        shipped=[ShippedCount("a", 1, 8, 7, 600)],
        shuffled=[Shuffled(3, 2, 1)],
        seconds_by_part={"hop 1": 0.5},
        found={"q#1": Found(pairs=7, results=3)},
    )
    report.fail({"q#1"}, EvaluationError("division by zero", hint="guard it"))
    return report


FIELDS = [each.name for each in fields(TaskReport)]
TRAVELLING = [name for name in FIELDS if name != "void_queries"]


@pytest.mark.parametrize("name", FIELDS)
def test_this_test_knows_every_field(name: str) -> None:
    assert getattr(full_report(), name), "a new field belongs into full_report"


def test_a_report_survives_the_way_to_the_driver() -> None:
    report = full_report()
    arrived = TaskReport.from_bytes(report.to_bytes())
    assert arrived == report
    assert arrived.void_queries == set()
    assert report.keys == [KeyCount("a", "[k]", 3, [2, 1], [], [], [1, 1 << 63])]


@pytest.mark.parametrize("name", TRAVELLING)
def test_no_field_of_another_task_is_lost(name: str) -> None:
    whole = TaskReport()
    whole.add(full_report())
    assert getattr(whole, name) == getattr(full_report(), name)
    whole.add(full_report())
    one, two = getattr(full_report(), name), getattr(whole, name)
    if isinstance(one, list | Entries):
        assert list(two) == [*one, *one]
    else:
        assert two == {key: value + value for key, value in one.items()}


def test_reports_of_tasks_stay_as_they_were_when_they_are_added() -> None:
    one, whole = full_report(), TaskReport()
    whole.add(one)
    whole.add(one)
    assert one == full_report()


def test_a_field_that_does_not_say_how_it_is_merged_is_refused() -> None:
    @dataclass
    class Forgetful(TaskReport):
        skipped_rows: int = 0

    with pytest.raises(TypeError, match="Forgetful does not say how tasks' skipped_rows become one"):
        rules_of(Forgetful)


def test_the_first_failure_of_a_query_counts() -> None:
    report = TaskReport()
    report.fail({"q#1", "q#2"}, EvaluationError("first"))
    report.fail({"q#2", "q#3"}, EvaluationError("second"))
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


def test_evaluations_get_what_time_is_left_to_one_of_those_they_are_for() -> None:
    limits = BatchLimits(QueryLimits(ms=1000.0), {"free": QueryLimits(), "short": QueryLimits(ms=10.0)})
    report = TaskReport()
    assert report.left_ms(["a"], limits) == 1000.0
    report.count("a", Found(ms=400.0), limits)
    report.count("b", Found(ms=300.0), limits)
    report.count("short", Found(ms=30.0), limits)
    assert report.left_ms(["a"], limits) == 600.0
    assert report.left_ms(["a", "b"], limits) == 700.0
    assert report.left_ms(["short"], limits) == 0.0
    assert report.left_ms(["a", "free"], limits) is None
    # What is done for nobody in particular is not given up at once.
    assert report.left_ms([], limits) is None
    assert report.left_ms([], BatchLimits(QueryLimits(ms=1000.0))) == 1000.0
