"""What selections say of shipped rows: sent along as bits (query-sets), or decided again where rows arrive (S7).

Queries of AJoin's template over one batch of two streams; source and store stage run in this process, as they are. All
six attributes are kept for joins, so what selections read travels anyway. Bytes are those of the messages, and of the
messages under LZ4, Spark's codec for shuffles. Seconds are of processor time: in the source until the messages are
there, for LZ4 both ways, and in the store stage until the buckets are written. What a network takes comes on top of it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from benchmarks.data.workloads import ATTRIBUTE_COUNT, Workload, ajoin_queries, rows_of_file
from dovetail.frontend.compile_sql import compile_sql
from dovetail.kernels.arrow_types import sql_type_of
from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.shipping import Shipping
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.source.source_operator import run_source
from dovetail.runtime.source.store_operator import run_store

QUERY_COUNTS = (20, 100, 500, 2000)
KEY_GROUPS = 128
Made = TypeVar("Made")


@dataclass(frozen=True)
class _Cost:
    """Of shipping one batch one way."""

    bytes: int
    compressed_bytes: int
    seconds: float

    def figures(self) -> dict[str, object]:
        return {"bytes": self.bytes, "compressed_bytes": self.compressed_bytes, "seconds": self.seconds}


def compare_marks(
    rows: int = 200_000, partitions: int = 4, counts: Sequence[int] = QUERY_COUNTS, repeats: int = 3, seed: int = 1
) -> dict[str, dict[str, dict[str, object]]]:
    """By the number of queries what both ways cost, the best of `repeats` runs each; `rows` of each of two streams."""
    workload = Workload(("a", "b"), 1, rows, (rows,) * ATTRIBUTE_COUNT, seed)
    tables = {stream: rows_of_file(workload, number, 0) for number, stream in enumerate(workload.streams)}
    queries = ajoin_queries(max(counts), rows, seed)
    found: dict[str, dict[str, dict[str, object]]] = {}
    for count in counts:
        plan = _plan(dict(list(queries.items())[:count]), tables, partitions)
        ways = {"query_sets": Shipping(decides_again=False), "specialized": Shipping(decides_again=True)}
        found[str(count)] = {
            way: min(
                (_ship(replace(plan, shipping=shipping), tables) for _ in range(repeats)), key=lambda cost: cost.seconds
            ).figures()
            for way, shipping in ways.items()
        }
    return found


def _plan(queries: Mapping[str, str], tables: Mapping[str, pa.Table], partitions: int) -> SharedPlan:
    streams = _streams(tables)
    live = tuple(LiveQuery(name, name, compile_sql(sql, streams)) for name, sql in queries.items())
    return plan_queries(live, streams, even_placement(KEY_GROUPS, partitions), epoch=1)


def _streams(tables: Mapping[str, pa.Table]) -> dict[str, Stream]:
    return {
        name: Stream(name, tuple((column.name, sql_type_of(column.type)) for column in table.schema), "ts")
        for name, table in tables.items()
    }


def _ship(plan: SharedPlan, tables: Mapping[str, pa.Table]) -> _Cost:
    with tempfile.TemporaryDirectory() as folder:
        task = BatchTask(folder, 1, plan, tuple(_streams(tables).values()), (), (), (), "UTC")
        rows = [(name, batch) for name, table in tables.items() for batch in table.to_batches()]
        sent, seconds = _timed(lambda: list(run_source(task, 0, rows)))
        shipped = [message for message in sent if message.kind is Kind.ROWS]
        codec = pa.Codec("lz4")
        packed, packing_s = _timed(lambda: [codec.compress(message.payload) for message in shipped])
        unpacked, unpacking_s = _timed(
            lambda: [
                Message(message.target, message.kind, codec.decompress(data, len(message.payload), asbytes=True))
                for message, data in zip(shipped, packed, strict=True)
            ]
        )
        seconds += packing_s + unpacking_s
        for partition in range(plan.placement.partition_count):
            received = [message for message in unpacked if message.target == partition]
            seconds += _timed(partial(list, run_store(task, partition, received)))[1]
    return _Cost(sum(len(each.payload) for each in shipped), sum(len(data) for data in packed), seconds)


def _timed(make: Callable[[], Made]) -> tuple[Made, float]:
    began = time.process_time()
    made = make()
    return made, time.process_time() - began
