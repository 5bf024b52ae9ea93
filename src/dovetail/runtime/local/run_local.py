"""Runs a batch's tasks in this process, exchange by exchange, as Spark would in its stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa

from dovetail.core.sync import syncing_files
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.hop_operator import hops_by_task, run_hops
from dovetail.runtime.message import Message
from dovetail.runtime.source.source_operator import StreamRows, run_source
from dovetail.runtime.source.store_operator import run_store

RunTask = Callable[[Callable[[], Iterator[Message]]], list[Message]]
"""Runs one task; tests retry it here."""

RunStage = Callable[[int, Iterable[Message]], Iterator[Message]]
"""One stage in one partition."""


def run_once(task: Callable[[], Iterator[Message]]) -> list[Message]:
    return list(task())


def run_local(
    task: BatchTask,
    tables: Mapping[str, pa.Table],
    *,
    splits: int = 1,
    rows_per_chunk: int | None = None,
    run_task: RunTask = run_once,
    after_source: Callable[[], None] = lambda: None,
) -> list[Message]:
    """Each stream's rows are dealt to `splits` source tasks in contiguous parts, and come to them in chunks."""
    messages: list[Message] = []
    with syncing_files(task.syncing):
        for split in range(splits):
            rows = _rows_of_split(tables, split, splits, rows_per_chunk)
            messages += run_task(lambda split=split, rows=rows: run_source(task, split, rows))  # type: ignore[misc]
        after_source()
        return run_stages(task, messages, run_task)


def run_stages(task: BatchTask, messages: list[Message], run_task: RunTask = run_once) -> list[Message]:
    """Everything after the source in this process."""
    stages: list[RunStage] = [partial(run_store, task)] if task.plan.ships_rows else []
    stages += [partial(_run_hops, task, hops) for hops in hops_by_task(task.plan)]
    for run_stage in stages:
        sent: list[Message] = []
        for partition in range(task.plan.placement.partition_count):
            received = [message for message in messages if message.target == partition]
            sent += run_task(partial(run_stage, partition, received))
        messages = sent
    return messages


def _run_hops(task: BatchTask, hops: range, partition: int, received: Iterable[Message]) -> Iterator[Message]:
    return run_hops(task, partition, hops, received)


def _rows_of_split(
    tables: Mapping[str, pa.Table], split: int, splits: int, rows_per_chunk: int | None
) -> Iterable[StreamRows]:
    rows: list[StreamRows] = []
    for stream, table in tables.items():
        lower, upper = table.num_rows * split // splits, table.num_rows * (split + 1) // splits
        chunks = table.slice(lower, upper - lower).to_batches(max_chunksize=rows_per_chunk)
        rows += [(stream, chunk) for chunk in chunks]
    return rows
