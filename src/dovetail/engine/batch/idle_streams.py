"""Streams that bring no row for long: they do not hold back the state of others for ever.

A row is kept as long as a partner may come, and a stream that is silent may always send one. With a timeout, a silent
stream counts as being as far in event time as the slowest one that still sends. What it sends later is then judged by
that: rows more than its lateness behind are late, counted as all late rows are, and not joined. So answers stay those
of batch SQL over the rows that are not late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.query.stream import Stream
from dovetail.runtime.report import StreamCount


class IdleWatch:
    """Which streams were silent for the timeout. Time counts while this process runs batches, never while it is down.

    It is measured from the beginning of one batch to that of another: what came while a batch took long is in the next.
    """

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._seen_at: dict[str, float] = {}

    def idle(self, streams: Iterable[str], counts: Iterable[StreamCount], began_at: float) -> frozenset[str]:
        """Those that are idle after a batch with these counts."""
        if self._timeout_s is None:
            return frozenset()
        sending = {count.stream for count in counts if count.rows}
        for name in streams:
            if name in sending or name not in self._seen_at:
                self._seen_at[name] = began_at
        return frozenset(name for name in streams if began_at - self._seen_at[name] >= self._timeout_s)


def carry_along(times_us: Mapping[str, int], idle: frozenset[str], streams: Mapping[str, Stream]) -> dict[str, int]:
    """By stream how far it is in event time, idle ones no less far than the slowest of the others."""
    carried = dict(times_us)
    sending = {name: time for name, time in times_us.items() if name in streams and name not in idle}
    for name in sorted(idle):
        kind = _time_type(streams[name])
        # Times without a zone are not comparable with those that have one.
        others = [time for other, time in sending.items() if _time_type(streams[other]) == kind]
        if kind is not None and others:
            carried[name] = max(min(others), times_us.get(name, min(others)))
    return carried


def _time_type(stream: Stream) -> object:
    return None if stream.event_time is None else stream.type_of(stream.event_time)
