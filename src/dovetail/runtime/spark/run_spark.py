"""Runs a batch's tasks as one Spark job: a source stage and one stage per hop, joined by exact exchanges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import Broadcast, TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.hop_operator import run_hop
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.source_operator import run_source
from dovetail.runtime.spark.pack_columns import Packing

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
    slim = _without_plan(task)
    partitions = task.plan.placement.partition_count
    messages = rows.mapInArrow(_source_function(slim, shared, packing), MESSAGE_SCHEMA)
    for hop in range(1, task.plan.hop_count + 1):
        exchanged = messages.repartitionById(partitions, messages["target"])
        messages = exchanged.mapInArrow(_hop_function(slim, shared, hop), MESSAGE_SCHEMA)
    return [Message(row.target, Kind(row.kind), bytes(row.payload)) for row in messages.collect()]


def _source_function(slim: dict[str, Any], shared: Broadcast[Any], packing: Packing) -> MapArrow:
    def source(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _with_plan(slim, shared)
        rows = (part for batch in batches for part in packing.unpacked(batch))
        yield from _to_batches(run_source(task, _partition_id(), rows))

    return source


def _hop_function(slim: dict[str, Any], shared: Broadcast[Any], hop: int) -> MapArrow:
    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _with_plan(slim, shared)
        yield from _to_batches(run_hop(task, _partition_id(), hop, _from_batches(batches)))

    return probe


def _without_plan(task: BatchTask) -> dict[str, Any]:
    """The task for the closure of each batch; plan and streams travel once per epoch in a broadcast."""
    return {name: value for name, value in vars(task).items() if name not in ("plan", "streams")}


def _with_plan(slim: dict[str, Any], shared: Broadcast[Any]) -> BatchTask:
    plan, streams = shared.value
    return BatchTask(plan=plan, streams=streams, **slim)


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
