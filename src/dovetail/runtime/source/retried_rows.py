"""Bad rows that somebody asked for again: they come with this batch as if they arrived in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from dovetail.core.errors import HistoryError
from dovetail.plan.wanted_columns import wanted_columns
from dovetail.runtime.batch_task import BATCH, BatchTask
from dovetail.runtime.report import RetriedFile, TaskReport
from dovetail.store.bad_rows import read_as_they_came

RETRYING_SPLIT = 0
"""The source task that takes them. A batch without one takes none: they wait for the next."""


def retried_rows(task: BatchTask, split: int, report: TaskReport) -> Iterator[tuple[str, list[pa.RecordBatch]]]:
    """By file. What lacks a column that some query reads now stays aside: nobody knows its value."""
    if split != RETRYING_SPLIT or not task.retried:
        return
    wanted = wanted_columns(task.plan, task.streams)
    for file, batch in task.retried:
        if file.unread is not None:
            continue  # read from its source, with the batch's other rows
        table = read_as_they_came(Path(task.root), file)
        missing = sorted(set(wanted[file.stream]) - {BATCH, *table.column_names})
        if missing and task.late_before_us_by_batch is not None:
            raise HistoryError(
                f"bad rows of stream {file.stream!r}, which batch {batch} took again, were kept without {missing[0]!r}",
                hint="create the query without backfill",
            )
        report.retried.append(RetriedFile(file.path, missing))
        if missing or not table.num_rows:
            continue
        if task.late_before_us_by_batch is not None:
            table = table.append_column(BATCH, pa.array(np.full(table.num_rows, batch, np.int64)))
        yield file.stream, table.to_batches()
