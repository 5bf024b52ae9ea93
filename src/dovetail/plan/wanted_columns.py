"""The columns that a batch needs of its streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.expression import columns_of
from dovetail.query.stream import Stream


def wanted_columns(plan: SharedPlan, streams: Iterable[Stream]) -> Mapping[str, list[str]]:
    """By stream those that the source operator needs, the event time always."""
    wanted: dict[str, list[str]] = {}
    for stream in streams:
        names = {stream.event_time} if stream.event_time else set()
        for store in plan.stores:
            if store.stream == stream.name:
                names |= {name for name in store.columns if stream.type_of(name) is not None}
                names |= {c.name for selection in store.selections for c in columns_of(selection)}
                names |= {store.hop_window.time_column} if store.hop_window else set()
        wanted[stream.name] = [name for name, _ in stream.columns if name in names]
    return wanted
