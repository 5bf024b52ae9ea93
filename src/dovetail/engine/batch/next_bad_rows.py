"""What a batch's bad rows come to: counted, kept aside as far as there is room, taken again where that was asked."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.core.errors import BadRowError
from dovetail.engine.bad_rows import MAX_BAD_BYTES, MAX_BAD_ROWS, BadRowTotals
from dovetail.engine.state import EngineState
from dovetail.query.row_rules import FAIL, OFF, QUARANTINE
from dovetail.query.stream import Stream
from dovetail.runtime.report import BadCount, TaskReport
from dovetail.runtime.source.bad_rows import AHEAD
from dovetail.store.bad_rows import BadFile

_log = logging.getLogger("dovetail")


@dataclass(frozen=True)
class BadRowsAfter:
    """`files` are kept aside after the batch; it took `retried` again, and nobody needs the files in `dead_paths`.

    `unread` are files of sources that it did without, by stream.
    """

    files: tuple[BadFile, ...]
    totals: Mapping[str, BadRowTotals]
    retried: tuple[BadFile, ...]
    dead_paths: tuple[str, ...]
    unread: Mapping[str, tuple[str, ...]]


def room_by_stream(state: EngineState) -> dict[str, int]:
    """How many more bad rows of each stream may be kept aside."""
    kept = _rows_by_stream(state.bad_files)
    return {name: max(MAX_BAD_ROWS - kept[name], 0) for name in state.stream_texts}


def check_bad_rows(streams: Mapping[str, Stream], counts: Sequence[BadCount]) -> None:
    """Raise if there are some of a stream that shall rather fail than go on without them."""
    for count in counts:
        if streams[count.stream].rules.on_bad_row == FAIL:
            raise BadRowError(
                f"stream {count.stream!r} has {count.rows} bad rows, and its on_bad_row is 'fail'",
                where=count.example,
                hint="mend them at the source; or have them kept aside (on_bad_row = 'quarantine') or left out ('drop')"
                + (f"; or take them (max_event_time_ahead = '{OFF}')" if count.kind == AHEAD else ""),
            )


def next_bad_rows(before: EngineState, streams: Mapping[str, Stream], report: TaskReport) -> BadRowsAfter:
    """`before` has the batch's number, and the marks of what is asked for again."""
    refused = {each.path for each in report.retried if each.missing_columns}
    taken = {each.path for each in report.retried} - refused
    retried = tuple(file for file in before.bad_files if file.path in taken)
    waiting = [
        replace(file, is_retried=False) if file.path in refused else file
        for file in before.bad_files
        if file.path not in taken
    ]
    kept = _within_bounds(waiting, sorted(report.bad_files, key=lambda file: file.path))
    dead_paths = {file.path for file in report.bad_files} - {file.path for file in kept}
    totals = _totals(before, streams, report, _rows_by_stream(kept), _rows_by_stream(retried))
    unread: dict[str, tuple[str, ...]] = {}
    for each in report.unread:
        unread[each.stream] = (*unread.get(each.stream, ()), each.path)
    return BadRowsAfter((*waiting, *kept), totals, retried, tuple(sorted(dead_paths)), unread)


def say_aloud(streams: Mapping[str, Stream], report: TaskReport, batch: int) -> None:
    """One line a kind: who reads the log must not have to look for rows that are missing."""
    for (stream, kind), (rows, example) in _by_kind(report.bad_rows).items():
        rules = streams[stream].rules
        fate = "kept aside" if rules.on_bad_row == QUARANTINE else "left out"
        hint = ""
        if kind == AHEAD:
            hint = (
                "; they move no watermark. If its times are meant so, as in a simulation, declare the stream with"
                f" max_event_time_ahead = '{OFF}' and retry its bad rows"
            )
        _log.warning("batch %d: %d rows of stream %s are %s: %s%s", batch, rows, stream, fate, example, hint)
    for each in report.retried:
        if each.missing_columns:
            _log.warning(
                "batch %d: bad rows in %s stay aside: they were kept without %s, which a query reads now",
                batch,
                each.path,
                ", ".join(each.missing_columns),
            )


def _within_bounds(waiting: Sequence[BadFile], new: Sequence[BadFile]) -> list[BadFile]:
    """The new files that may stay beside those that wait, the last one perhaps in part."""
    rows, size = _rows_by_stream(waiting), Counter[str]()
    for file in waiting:
        size[file.stream] += file.size_bytes
    kept: list[BadFile] = []
    for file in new:
        room = MAX_BAD_ROWS - rows[file.stream]
        if room > 0 and size[file.stream] + file.size_bytes <= MAX_BAD_BYTES:
            kept.append(replace(file, rows=min(file.rows, room)))
            rows[file.stream] += kept[-1].rows
            size[file.stream] += file.size_bytes
    return kept


def _totals(
    before: EngineState, streams: Mapping[str, Stream], report: TaskReport, kept: Counter[str], retried: Counter[str]
) -> dict[str, BadRowTotals]:
    """`kept` and `retried` are the rows that the batch put aside and took again, by stream."""
    totals = dict(before.bad_row_totals)
    found: Counter[str] = Counter()
    for (stream, kind), (rows, example) in _by_kind(report.bad_rows).items():
        known = totals.get(stream, BadRowTotals())
        by_kind = {**known.rows_by_kind, kind: known.rows_by_kind.get(kind, 0) + rows}
        totals[stream] = replace(known, rows_by_kind=by_kind, last_batch=before.batch, last_reason=example)
        found[stream] += rows if streams[stream].rules.on_bad_row == QUARANTINE else 0
    for stream in found.keys() | retried.keys():
        known = totals[stream]
        totals[stream] = replace(
            known,
            overflowed_rows=known.overflowed_rows + found[stream] - kept[stream],
            retried_rows=known.retried_rows + retried[stream],
        )
    return totals


def _rows_by_stream(files: Iterable[BadFile]) -> Counter[str]:
    rows: Counter[str] = Counter()
    for file in files:
        rows[file.stream] += file.rows
    return rows


def _by_kind(counts: Sequence[BadCount]) -> dict[tuple[str, str], tuple[int, str]]:
    """By stream and kind the rows of all tasks, and one reason."""
    found: dict[tuple[str, str], tuple[int, str]] = {}
    for count in sorted(counts, key=lambda count: (count.stream, count.kind, count.example)):
        rows, example = found.get((count.stream, count.kind), (0, count.example))
        found[count.stream, count.kind] = rows + count.rows, example
    return found
