"""Rows that their stream cannot use leave the batch here, before they can move its watermark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.match.match_pairs import NULL_TIME
from dovetail.query.row_rules import FIRST_TIME_US, LAST_TIME_US, QUARANTINE
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BATCH, BatchTask
from dovetail.runtime.report import BadCount, TaskReport
from dovetail.store.bad_rows import SOURCE, time_text, write_bad_rows

I64 = npt.NDArray[np.int64]
Columns = dict[str, pa.Array]
TOO_LATE, TOO_EARLY, AHEAD = "beyond year 9999", "before year 1", "too far ahead"


class BadRowSieve:
    """Of one task. A NULL time is not bad: queries without time bounds may still join the row."""

    def __init__(self, task: BatchTask, report: TaskReport) -> None:
        self._task = task
        self._report = report
        self._last_time_us = dict(task.last_time_us)
        self._room = dict(task.bad_row_room)
        self._seen: Counter[str] = Counter()

    def sift(self, stream: Stream, columns: Columns, times: I64) -> tuple[Columns, I64, int]:
        """The rows that can be used, their times, and how many others there were; these are kept aside."""
        first = self._seen[stream.name]
        self._seen[stream.name] += len(times)
        last_time_us = self._last_time_of(stream, columns)
        sources = columns.pop(SOURCE, None)
        if times.max() <= np.min(last_time_us) and times.min() >= FIRST_TIME_US:
            return columns, times, 0
        bad = (times > last_time_us) | ((times < FIRST_TIME_US) & (times != NULL_TIME))
        rows = np.flatnonzero(bad)
        if not len(rows):
            return columns, times, 0
        self._count(stream, times[rows], sources, rows)
        if stream.rules.on_bad_row == QUARANTINE:
            kept = rows[: self._room.get(stream.name, 0)]
            self._keep(stream, {**columns, **({} if sources is None else {SOURCE: sources})}, times, kept, first)
        usable = pa.array(~bad)
        return {name: column.filter(usable) for name, column in columns.items()}, times[~bad], len(rows)

    def _last_time_of(self, stream: Stream, columns: Columns) -> I64 | int:
        """One for all rows; for rows of the past that of each row's batch."""
        if self._task.last_time_us_by_batch is None:
            return self._last_time_us.get(stream.name, LAST_TIME_US)
        batches = columns[BATCH].to_numpy(zero_copy_only=False)
        bounds = np.full(len(batches), LAST_TIME_US)
        for batch, name, last_time_us in self._task.last_time_us_by_batch:
            if name == stream.name:
                bounds[batches == batch] = last_time_us
        return bounds

    def _count(self, stream: Stream, times: I64, sources: pa.Array | None, rows: I64) -> None:
        kinds = [_kind(time) for time in times.tolist()]
        for kind, count in sorted(Counter(kinds).items()):
            place = kinds.index(kind)
            source = None if sources is None else sources[int(rows[place])].as_py()
            example = _reason(stream, int(times[place])) + ("" if source is None else f" ({source})")
            self._report.bad_rows.append(BadCount(stream.name, kind, count, example))

    def _keep(self, stream: Stream, columns: Columns, times: I64, rows: I64, first: int) -> None:
        if not len(rows):
            return
        self._room[stream.name] -= len(rows)
        taken = pa.array(rows)
        file = write_bad_rows(
            Path(self._task.root),
            stream.name,
            self._task.batch,
            uuid4().hex[:12],
            {name: column.take(taken) for name, column in columns.items()},
            [_reason(stream, time) for time in times[rows].tolist()],
            rows + first,
        )
        self._report.bad_files.append(file)


def _kind(time_us: int) -> str:
    if time_us > LAST_TIME_US:
        return TOO_LATE
    return TOO_EARLY if time_us < FIRST_TIME_US else AHEAD


def _reason(stream: Stream, time_us: int) -> str:
    kind = _kind(time_us)
    if kind == AHEAD:
        return f"{stream.event_time} is {time_text(time_us)}, more than {stream.rules.max_ahead} past the batch's time"
    return f"{stream.event_time} is in {time_text(time_us)}: {kind}, which no timestamp of SQL holds"
