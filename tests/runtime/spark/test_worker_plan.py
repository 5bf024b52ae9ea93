"""What workers get of a plan is sent once for it, and never to tasks of another."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from dovetail.plan.placement import Placements, even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT
from dovetail.runtime.spark.pack_columns import pack_columns
from dovetail.runtime.spark.pipeline import _WorkerPlan

STREAMS = (Stream("a", (("k", BIGINT),)),)


def task_of(plan: SharedPlan, streams: tuple[Stream, ...] = STREAMS) -> Any:
    return SimpleNamespace(plan=plan, streams=streams)


def test_a_second_try_of_a_batch_may_have_another_plan_of_the_same_epoch() -> None:
    read = pack_columns({})
    first = SharedPlan(3, (), (), Placements(even_placement(8, 2)), ())
    made = _WorkerPlan(first, STREAMS, read, cast("Any", None), read, None)
    assert made.serves(task_of(first), read)
    assert not made.serves(task_of(replace(first)), read)
    assert not made.serves(task_of(first, (*STREAMS, Stream("b", (("k", BIGINT),)))), read)
    assert not made.serves(task_of(first), pack_columns({}))
