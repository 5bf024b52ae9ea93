"""Runs a batch's tasks as one Spark job: a source stage, one that keeps shipped rows (where they are shipped), and one
stage per hop, joined by exact exchanges.

A batch that promises to be small runs as a single task.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark import Broadcast, TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from dovetail.core.sync import syncing_files
from dovetail.plan.shared_plan import SharedPlan
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.hop_operator import hops_by_task, run_hops
from dovetail.runtime.local.run_local import run_stages
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.report import TaskReport
from dovetail.runtime.source.source_operator import run_source
from dovetail.runtime.source.store_operator import run_store
from dovetail.runtime.spark.executors import runs_tasks_here
from dovetail.runtime.spark.pack_columns import Packing
from dovetail.runtime.spark.shuffle_metrics import ShuffleMetrics
from dovetail.runtime.worker_memory import keep_freed_memory

MESSAGE_SCHEMA = StructType(
    [
        StructField("target", IntegerType(), False),
        StructField("kind", IntegerType(), False),
        StructField("payload", BinaryType(), False),
    ]
)
_ARROW_SCHEMA = pa.schema([("target", pa.int32()), ("kind", pa.int32()), ("payload", pa.binary())])
MapArrow = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def run_spark(task: BatchTask, rows: DataFrame, packing: Packing, shared: Broadcast[Any]) -> list[Message]:
    """The batch's one action. `rows` is packed; `shared` holds what changes only with the plan."""
    if not runs_tasks_here(rows.sparkSession):
        # Nobody on the driver's machine can wait for what is in the memory of another.
        task = replace(task, syncing=task.syncing.by_task)
    slim = _without_plan(task)
    if task.is_small:
        messages = rows.coalesce(1).mapInArrow(_whole_function(slim, shared, packing), MESSAGE_SCHEMA)
        return _collected(messages)
    partitions = task.plan.placement.partition_count
    # One source task a core: every task writes files of its own, and every file is one more to probe.
    messages = rows.coalesce(partitions).mapInArrow(_source_function(slim, shared, packing), MESSAGE_SCHEMA)
    stages = [_store_function(slim, shared)] if task.plan.ships_rows else []
    stages += [_hops_function(slim, shared, hops) for hops in hops_by_task(task.plan)]
    for stage in stages:
        exchanged = messages.repartitionById(partitions, messages["target"])
        messages = exchanged.mapInArrow(stage, MESSAGE_SCHEMA)
    return _collected(messages) if task.plan.shipping is None else _collected_and_measured(messages, len(stages))


def _collected(messages: DataFrame) -> list[Message]:
    return [Message(row.target, Kind(row.kind), bytes(row.payload)) for row in messages.collect()]


def _collected_and_measured(messages: DataFrame, exchanges: int) -> list[Message]:
    """With what the exchanges wrote. Spark writes that down a moment later: only who asked to ship rows waits."""
    metrics = ShuffleMetrics(messages.sparkSession.sparkContext)
    with metrics.observed():
        collected = _collected(messages)
    report = TaskReport(shuffled=metrics.exchanges(exchanges))
    return [*collected, Message(0, Kind.REPORT, report.to_bytes())]


def _whole_function(slim: dict[str, Any], shared: Broadcast[Any], packing: Packing) -> MapArrow:
    def whole(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = _with_plan(slim, shared)
        task = given.in_one_partition()
        rows = (part for batch in batches for part in packing.unpacked(batch))
        with syncing_files(task.syncing):
            yield from _to_batches(run_stages(task, list(run_source(task, _partition_id(), rows))))
        _settling.after_task(given.plan)

    return whole


def _source_function(slim: dict[str, Any], shared: Broadcast[Any], packing: Packing) -> MapArrow:
    def source(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _with_plan(slim, shared)
        rows = (part for batch in batches for part in packing.unpacked(batch))
        with syncing_files(task.syncing):
            yield from _to_batches(run_source(task, _partition_id(), rows))
        _settling.after_task(task.plan)

    return source


def _store_function(slim: dict[str, Any], shared: Broadcast[Any]) -> MapArrow:
    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _with_plan(slim, shared)
        with syncing_files(task.syncing):
            yield from _to_batches(run_store(task, _partition_id(), _from_batches(batches)))
        _settling.after_task(task.plan)

    return keep


def _hops_function(slim: dict[str, Any], shared: Broadcast[Any], hops: range) -> MapArrow:
    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _with_plan(slim, shared)
        with syncing_files(task.syncing):
            yield from _to_batches(run_hops(task, _partition_id(), hops, _from_batches(batches)))
        _settling.after_task(task.plan)

    return probe


def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task that does nothing but load this module, with all that the others need."""
    yield from batches


def _without_plan(task: BatchTask) -> dict[str, Any]:
    """The task for the closure of each batch; plan and streams travel once per epoch in a broadcast."""
    return {name: value for name, value in vars(task).items() if name not in ("plan", "streams")}


def _with_plan(slim: dict[str, Any], shared: Broadcast[Any]) -> BatchTask:
    keep_freed_memory()
    plan, streams = shared.value
    return BatchTask(plan=plan, streams=streams, **slim)


class _Settling:
    """Keeps the garbage collector away from what stays: modules, compiled kernels, the plan.

    Between two tasks a PySpark worker runs a full collection. Over all that we import it takes longer than a whole
    tiny batch; frozen objects are not looked at. What is loaded comes with the first tasks of a plan, so those
    freeze, ever more rarely; what a task makes later is collected as ever.
    """

    def __init__(self) -> None:
        self._plan: SharedPlan | None = None
        self._tasks = 0

    def after_task(self, plan: SharedPlan) -> None:
        if plan is not self._plan:
            self._plan, self._tasks = plan, 0
        self._tasks += 1
        is_power_of_two = self._tasks & (self._tasks - 1) == 0
        if is_power_of_two:
            gc.collect()
            gc.freeze()


_settling = _Settling()


def _partition_id() -> int:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("not inside a Spark task")
    return context.partitionId()


def _to_batches(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    for message in messages:
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([message.target], pa.int32()),
                pa.array([int(message.kind)], pa.int32()),
                pa.array([message.payload], pa.binary()),
            ],
            schema=_ARROW_SCHEMA,
        )


def _from_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ("target", "kind", "payload")]
        for target, kind, payload in zip(*columns, strict=True):
            yield Message(target, Kind(kind), payload)
