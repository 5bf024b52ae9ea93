"""A batch begins: changes of queries and streams take effect, it gets its plan, and tasks what they must know."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.engine.batch.choose_samples import choose_samples
from dovetail.engine.batch.make_task import make_task
from dovetail.engine.batch.parts import Parts
from dovetail.engine.state import EngineState
from dovetail.optimizer.planned import Planned
from dovetail.plan.sampled_join import SampledJoin
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask
from dovetail.store.manifest import Arrived


@dataclass(frozen=True)
class Begun:
    """`before` is the state that the last batch left, with this batch's number, epoch, queries and fills.

    `arrived` says how far streams are read when the batch is done; `began_at` is the clock's, `plan_s` took it.
    """

    before: EngineState
    planned: Planned
    streams: Mapping[str, Stream]
    task: BatchTask
    arrived: Arrived
    began_at: float
    plan_s: float


def begin_batch(
    batch: int,
    arrived: Arrived,
    sampled_joins: tuple[SampledJoin, ...],
    parts: Parts,
    stopped: Mapping[str, str] | None = None,
) -> Begun:
    """`sampled_joins` are estimated besides those that planning needs.

    `stopped` queries are quarantined before the batch, which failed without telling whose fault that was.
    """
    began_at, began_s = parts.clock(), time.perf_counter()
    plan = parts.plans.for_batch(batch, stopped)
    statistics = parts.head.statistics
    task = make_task(
        parts.chain.root,
        parts.options,
        plan,
        (*choose_samples(plan.planned.queries, statistics), *sampled_joins),
        parts.fill_policy.budget_rows(statistics, plan.streams),
        parts.head.figures,
        began_at,
    )
    return Begun(plan.before, plan.planned, plan.streams, task, arrived, began_at, time.perf_counter() - began_s)
