"""Random scenarios find bugs that are planted where rows are kept, routed, placed and decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.engine.state import EngineState
from dovetail.kernels.match import hash_keys
from dovetail.kernels.match.hash_keys import KeyCodes
from dovetail.plan import needs
from dovetail.plan.lone_rows import LoneRows
from dovetail.plan.placement import Placement, even_placement
from dovetail.plan.probe_tree import ProbeStep
from dovetail.plan.routing import Routing
from dovetail.plan.store_plan import Retention
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.local import run_local
from dovetail.runtime.message import Message
from dovetail.runtime.probe import probe_operator, route_entries, rows_in_flight
from dovetail.runtime.probe.lone_row_operator import ALL_ENTRIES, LoneRowOperator
from dovetail.runtime.probe.mapped_bucket import MappedBucket
from dovetail.runtime.probe.route_entries import Deal, Route
from dovetail.store.bucket_file import BucketMeta
from tests.support.planted_bugs import Bug, found_at

EDGES = ("edges of time",)
OUTER = ("outer joins", "long outer joins")
CHAINED = ("chains", "plain chains", "theta chains")


def always(wrong: Any) -> Callable[[Any], Any]:
    return lambda _right: wrong


def is_dead_a_second_early(self: Retention, max_time_us: int | None, watermarks: dict[str, int]) -> bool:
    if self.keep_us_by_stream is None or max_time_us is None:
        return False
    return all(s in watermarks and max_time_us + keep < watermarks[s] + 10**6 for s, keep in self.keep_us_by_stream)


def watermarks_without_lateness(self: EngineState, streams: Mapping[str, Stream]) -> dict[str, int]:
    return {name: time for name, time in self.max_time_us_by_stream.items() if name in streams}


def without_placing(right: Callable[[ProbeStep, str], Any]) -> Callable[[ProbeStep, str], Any]:
    return lambda step, member: replace(right(step, member), placing=None)


def by_the_whole_key(right: Callable[..., KeyCodes]) -> Callable[..., KeyCodes]:
    return lambda bucket, columns, _placing, timezone: right(bucket, columns, None, timezone)


Targets = Iterator[tuple[int, Any]]


def by_an_even_placement(right: Callable[..., Targets]) -> Callable[..., Targets]:
    def targets(routing: Routing, placement: Placement, codes: Any, refs: Any) -> Targets:
        return right(routing, even_placement(placement.group_count, placement.partition_count), codes, refs)

    return targets


class Turned(Route):
    """The last partition has an older placement."""

    def __init__(self, routing: Routing, placement: Placement, partition: int) -> None:
        if partition == placement.partition_count - 1:
            owners = placement.partition_by_group
            placement = replace(placement, partition_by_group=(*owners[1:], owners[0]))
        super().__init__(routing, placement, partition)


def only_where_units_were_first(right: Callable[..., Iterator[Message]]) -> Callable[..., Iterator[Message]]:
    first_count: dict[str, int] = {}

    def run_known(task: BatchTask, partition: int, hops: range, received: Iterable[Message]) -> Iterator[Message]:
        known = first_count.setdefault(task.root, task.plan.placement.partition_count)
        return right(task, partition, hops, received) if partition < known else iter(())

    return run_known


def decided_a_second_early(self: LoneRows, watermarks: dict[str, int]) -> int | None:
    watermark_us = watermarks.get(self.partner_stream)
    return None if watermark_us is None else watermark_us - self.upper_us + 10**6


BUGS = [
    Bug("rows expire too early", Retention, "is_dead", always(is_dead_a_second_early), EDGES),
    Bug("lateness is forgotten", EngineState, "watermark_us_by_stream", always(watermarks_without_lateness), known=2),
    Bug("NULL equals NULL", hash_keys, "_valid_mask", always(lambda _columns: None), known=9),
    Bug(
        "copies are at home",
        BucketMeta,
        "home_rows",
        always(property(lambda meta: meta.rows)),
        ("groups",),
        known=207,
    ),
    Bug("positions are dealt twice", Deal, "first", always(lambda _deal, lower, _offset: lower), known=3),
    Bug(
        "split rows go to one partition",
        route_entries,
        "_dealt",
        always(lambda refs, count: np.full(len(refs[0]), count)),
        CHAINED,
        known=7,
    ),
    Bug("new rows forget their placing key", ProbeStep, "probing_index", without_placing, known=30),
    Bug("partial results forget their placing key", MappedBucket, "code_address", by_the_whole_key, CHAINED, known=3),
    Bug("partial results go by another placement", rows_in_flight, "targets", by_an_even_placement, CHAINED),
    Bug("partitions disagree on a placement", probe_operator, "Route", always(Turned), known=3),
    Bug("a unit that joins does nothing", run_local, "run_hops", only_where_units_were_first, known=3),
    Bug("rows are decided too early", LoneRows, "decided_until", always(decided_a_second_early), OUTER, known=4),
    Bug("partners go too early", needs, "_asked_again", always(lambda _live, _relation: ()), OUTER, known=4),
    Bug(
        "semi joins forget earlier partners",
        LoneRowOperator,
        "_asking_again",
        always(lambda self, tree, _refs: self._asking(tree, (), ALL_ENTRIES)[0]),
        OUTER,
        known=6,
    ),
]


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    assert found_at(bug) is not None
