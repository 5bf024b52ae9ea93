"""Which rows are in time where streams that fall silent are carried along: a model that knows only rows and times."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.cases import EngineCase, KeptRows, Row


def keep_rows_under_timeout(case: EngineCase, begins: Sequence[float], timeout_s: float) -> KeptRows:
    """What lateness and silence leave of the case, if its batches begin at these seconds."""
    far: dict[str, int] = {}
    heard = {stream.name: begins[0] for stream in case.streams}
    kept: dict[str, list[tuple[Row, ...]]] = {stream.name: [] for stream in case.streams}
    late: dict[str, list[int]] = {stream.name: [] for stream in case.streams}
    for batch, begin in zip(case.batches, begins, strict=True):
        before = dict(far)
        for stream in case.streams:
            rows = batch.get(stream.name, ())
            times = stream.times_us(rows)
            limit = before[stream.name] - stream.lateness_us if stream.name in before else None
            in_time = [limit is None or time is None or time >= limit for time in times]
            kept[stream.name].append(tuple(row for row, is_in_time in zip(rows, in_time, strict=True) if is_in_time))
            late[stream.name].append(in_time.count(False))
            known = [time for time in times if time is not None]
            if known:
                far[stream.name] = max([far.get(stream.name, known[0]), *known])
            if rows:
                heard[stream.name] = begin
        silent = {name for name, moment in heard.items() if begin - moment >= timeout_s}
        kinds = {stream.name: dict(stream.columns).get(stream.event_time or "") for stream in case.streams}
        sending = {name: time for name, time in far.items() if name not in silent}
        for name in silent:
            others = [time for other, time in sending.items() if kinds[other] == kinds[name] is not None]
            if others:
                far[name] = max(min(others), far.get(name, min(others)))
    return KeptRows(
        {name: tuple(batches) for name, batches in kept.items()}, {name: tuple(each) for name, each in late.items()}
    )
