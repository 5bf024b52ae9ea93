"""Rows that their stream cannot use leave the batch here, before they can move its watermark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.query.row_rules import FIRST_TIME_US, LAST_TIME_US, QUARANTINE
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BATCH, BatchTask
from dovetail.runtime.report import BadCount, TaskReport
from dovetail.store.bad_rows import PLACE_COLUMNS, RECORD, SOURCE, texts_of, time_text, write_bad_rows

I64 = npt.NDArray[np.int64]
Columns = dict[str, pa.Array]
TOO_LATE, TOO_EARLY, AHEAD, UNDECODED = "beyond year 9999", "before year 1", "too far ahead", "undecodable record"
MOST_SHOWN = 200


class BadRowSieve:
    """Of one task. A NULL time is not bad: queries without time bounds may still join the row."""

    def __init__(self, task: BatchTask, report: TaskReport) -> None:
        self._task = task
        self._report = report
        self._last_time_us = dict(task.last_time_us)
        self._room = dict(task.bad_row_room)
        self._seen: Counter[str] = Counter()

    def sift(self, stream: Stream, columns: Columns, times: I64 | None) -> tuple[Columns, I64 | None, int]:
        """The rows that can be used, their times, and how many others there were; these are kept aside."""
        places = {name: columns.pop(name) for name in PLACE_COLUMNS if name in columns}
        length = len(next(iter(columns.values()), ()))
        first = self._seen[stream.name]
        self._seen[stream.name] += length
        bad = self._bad(stream, columns, times, places.get(RECORD), length)
        rows = np.flatnonzero(bad) if bad is not None else np.empty(0, np.int64)
        if bad is None or not len(rows):
            return columns, times, 0
        reasons = _Reasons(stream, times, places, rows)
        self._report.bad_rows += reasons.counts()
        if stream.rules.on_bad_row == QUARANTINE:
            self._keep(stream, {**columns, **places}, reasons, first)
        usable = pa.array(~bad)
        kept = {name: column.filter(usable) for name, column in columns.items()}
        return kept, None if times is None else times[~bad], len(rows)

    def _bad(
        self, stream: Stream, columns: Columns, times: I64 | None, records: pa.Array | None, length: int
    ) -> npt.NDArray[np.bool_] | None:
        """Which rows are bad; None for none, as nearly always."""
        bad: npt.NDArray[np.bool_] | None = None
        if times is not None and length:
            last_time_us = self._last_time_of(stream, columns)
            if times.max() > np.min(last_time_us) or times.min() < FIRST_TIME_US:
                # The column says what is NULL: the earliest time of all is the number that stands for it.
                known = columns[str(stream.event_time)].is_valid().to_numpy(zero_copy_only=False)
                bad = known & ((times > last_time_us) | (times < FIRST_TIME_US))
        if records is not None and records.null_count < length:
            undecoded: npt.NDArray[np.bool_] = records.is_valid().to_numpy(zero_copy_only=False)
            bad = undecoded if bad is None else bad | undecoded
        return bad

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

    def _keep(self, stream: Stream, columns: Columns, reasons: _Reasons, first: int) -> None:
        rows = reasons.rows[: self._room.get(stream.name, 0)]
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
            [reasons.of(place) for place in range(len(rows))],
            rows + first,
        )
        self._report.bad_files.append(file)


class _Reasons:
    """Why these rows of a stream are bad."""

    def __init__(self, stream: Stream, times: I64 | None, places: Columns, rows: I64) -> None:
        self._stream = stream
        self.rows = rows
        taken = pa.array(rows)
        self._times = None if times is None else times[rows].tolist()
        self._records = texts_of(places[RECORD].take(taken)) if RECORD in places else [None] * len(rows)
        self._sources = texts_of(places[SOURCE].take(taken)) if SOURCE in places else [None] * len(rows)

    def of(self, place: int) -> str:
        kind = self._kind(place)
        if self._times is None or kind == UNDECODED:
            return f"the record is not of the stream's columns and types: {str(self._records[place])[:MOST_SHOWN]}"
        time, name = time_text(self._times[place]), self._stream.event_time
        if kind == AHEAD:
            return f"{name} is {time}, more than {self._stream.rules.max_ahead} past the batch's time"
        return f"{name} is in {time}: {kind}, which no timestamp of SQL holds"

    def counts(self) -> list[BadCount]:
        """By kind, with one of them."""
        kinds = [self._kind(place) for place in range(len(self.rows))]
        found = []
        for kind, count in sorted(Counter(kinds).items()):
            place = kinds.index(kind)
            source = "" if self._sources[place] is None else f" ({self._sources[place]})"
            found.append(BadCount(self._stream.name, kind, count, self.of(place) + source))
        return found

    def _kind(self, place: int) -> str:
        if self._times is None or self._records[place] is not None:
            return UNDECODED
        if self._times[place] > LAST_TIME_US:
            return TOO_LATE
        return TOO_EARLY if self._times[place] < FIRST_TIME_US else AHEAD
