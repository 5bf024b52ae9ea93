"""Why a query has no new answers, in a line that a user can act on: from figures that the engine has anyway.

The first that holds is said:

    it has not begun       pending: begins with the next batch
    a batch takes long     batch 1 has been running for 12 s
    nothing came           no row of stream payments has come yet
    nothing was of use     all 12 new rows of payments were late
    nothing met            12 rows looked up payments, none found a partner
    too early to say       the next window ends when the watermark of payments passes 12:05:00; it is at 12:04:41
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from dovetail.core.errors import DovetailError
from dovetail.core.silence import Waiting
from dovetail.engine.batch.batches import UnderWay
from dovetail.engine.control.registry import QueryRecord, QueryState
from dovetail.engine.engine import Engine
from dovetail.engine.explain.text.words import and_list, counted
from dovetail.engine.progress.figures import BatchFigures, StepFigures, StreamFigures
from dovetail.query.aggregation import GroupWindow
from dovetail.query.closing import uppers_from
from dovetail.query.durations import short_duration
from dovetail.query.join_query import HopWindow, JoinQuery
from dovetail.query.time_text import zone_of

LONG_BATCH_S = 2.0
"""A batch that runs this long is why nothing comes."""


def waiting_for(engine: Engine, query_id: str) -> Waiting:
    record, figures = engine.queries.record(query_id), engine.head.figures
    running = engine.batches.under_way
    if record.state is QueryState.PENDING:
        return _pending(running, engine.head.batch)
    if not record.is_live:
        return Waiting(record.state.value, f"the query is {record.state.value}")
    if running is not None and (running.lasts_s >= LONG_BATCH_S or figures is None):
        return Waiting(f"batch {running.batch}", f"batch {running.batch} has been running for {running.lasts_s:.0f} s")
    if figures is None:
        return Waiting("no batch", "no batch has begun since the session was opened")
    try:
        query = engine.queries.compiled(query_id)
    except DovetailError:
        return Waiting("no stream", "its streams are not registered yet")
    return next(_by_figures(record, query, figures, engine))


def _pending(running: UnderWay | None, newest: int) -> Waiting:
    if running is not None:
        text = f"begins with the batch after batch {running.batch}, which has been running for {running.lasts_s:.0f} s"
    else:
        text = "begins with the first batch" if newest < 0 else "begins with the next batch"
    return Waiting("pending", f"pending: {text}")


def _by_figures(record: QueryRecord, query: JoinQuery, figures: BatchFigures, engine: Engine) -> Iterator[Waiting]:
    names = {relation.stream for relation in query.relations}
    streams = [stream for stream in figures.streams if stream.name in names]
    yield from _never_came(streams, engine)
    idle_s = engine.batches.now - figures.finished_at
    if any(each.name == record.name and each.output_rows for each in figures.queries):
        yield Waiting("next batch", f"the next batch has not ended yet: the last one did {idle_s:.0f} s ago")
    yield from _windows(query, streams, engine.options.timezone)
    yield from _nothing_new(streams, figures.batch, idle_s)
    yield from _met_nobody([step for step in figures.steps if record.name in step.queries], figures.batch)
    yield from _undecided(query, streams, engine.options.timezone)
    rows = counted(sum(stream.input_rows for stream in streams), "new row")
    yield Waiting("no answer", f"batch {figures.batch} had {rows} of its streams, and none gave an answer")


def _never_came(streams: list[StreamFigures], engine: Engine) -> Iterator[Waiting]:
    timed = {name for name, stream in engine.streams.by_name.items() if stream.event_time}
    missing = [stream.name for stream in streams if stream.watermark_us is None and stream.name in timed]
    if missing:
        said = f"stream {missing[0]}" if len(missing) == 1 else f"streams {and_list(missing)}"
        yield Waiting("never came", f"no row of {said} has come yet")


def _nothing_new(streams: list[StreamFigures], batch: int, idle_s: float) -> Iterator[Waiting]:
    names = and_list([stream.name for stream in streams])
    if not any(stream.input_rows for stream in streams):
        yield Waiting("no rows", f"no new row of {names} in batch {batch}, which ended {idle_s:.0f} s ago")
    for stream in streams:
        if stream.input_rows and stream.late_rows == stream.input_rows:
            rows = counted(stream.late_rows, "new row")
            yield Waiting("late", f"all {rows} of {stream.name} in batch {batch} came too late (docs/sql.md)")


def _met_nobody(steps: list[StepFigures], batch: int) -> Iterator[Waiting]:
    """Of the last step that rows came to: behind it there is nothing to look at."""
    reached = [step for step in steps if step.looked_up_rows]
    if not reached:
        if steps:
            yield Waiting("not wanted", f"no new row of batch {batch} passed the query's conditions")
        return
    last = max(step.hop for step in reached)
    looked = sum(step.looked_up_rows for step in reached if step.hop == last)
    if not any(step.matched_rows for step in reached if step.hop == last):
        yield Waiting("no partner", f"{counted(looked, 'row')} looked up in batch {batch}, none found a partner")


def _windows(query: JoinQuery, streams: list[StreamFigures], timezone: str) -> Iterator[Waiting]:
    """Of windowed groups: the stream that holds the next window open, and until when."""
    window = _window_of(query)
    watermarks = {stream.name: stream.watermark_us for stream in streams}
    if window is None or query.aggregation is None or query.aggregation.window_relation is None:
        return
    limits = []
    for alias, upper_us in uppers_from(query, query.aggregation.window_relation).items():
        stream = query.relation(alias).stream
        watermark_us = watermarks.get(stream)
        if upper_us is None or watermark_us is None:
            return
        limits.append((watermark_us - upper_us, stream, upper_us))
    closed_us, stream, upper_us = min(limits)
    # A window ends at its offset plus its size, modulo the slide; the next one ends after what is closed.
    end_us = closed_us + 1 + (window.offset_us + window.size_us - closed_us - 1) % window.slide_us
    passes, now = _times(timezone, end_us + upper_us, closed_us + upper_us)
    yield Waiting("window", f"the next window closes when the watermark of {stream} passes {passes}; it is at {now}")


def _window_of(query: JoinQuery) -> GroupWindow | HopWindow | None:
    groups = query.aggregation
    if groups is None or groups.window_relation is None:
        return None
    return groups.window or query.relation(groups.window_relation).hop_window


def _undecided(query: JoinQuery, streams: list[StreamFigures], timezone: str) -> Iterator[Waiting]:
    """Of outer and anti joins: when rows without a partner are answered."""
    for alias in query.lone_aliases:
        partner = query.relation(query.partner_of(alias)).stream
        upper_us = query.upper_us(alias, query.partner_of(alias)) or 0
        watermark_us = next((stream.watermark_us for stream in streams if stream.name == partner), None)
        if watermark_us is not None:
            past = f"is {short_duration(upper_us)} past them" if upper_us else "has passed them"
            (now,) = _times(timezone, watermark_us)
            what = f"rows of {query.relation(alias).stream} without a partner"
            yield Waiting("undecided", f"{what} are answered once the watermark of {partner} {past}; it is at {now}")


def _times(timezone: str, *times_us: int) -> list[str]:
    """Without the day where it is the same for all, or there is only one."""
    try:
        found = [datetime.fromtimestamp(us / 1e6, UTC).astimezone(zone_of(timezone)) for us in times_us]
    except (OverflowError, ValueError):
        return [f"{us} µs" for us in times_us]  # event times may be of any year, calendars are not
    form = "%H:%M:%S" if len({time.date() for time in found}) == 1 else "%Y-%m-%d %H:%M:%S"
    return [time.strftime(form) for time in found]
