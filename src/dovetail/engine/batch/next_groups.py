"""What a batch leaves of aggregations: how far windows are closed, which buckets stay, whom a failure concerns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.engine.state import EngineState
from dovetail.plan.group_plan import GroupPlan
from dovetail.store.bucket_file import BucketMeta


def closed_windows(
    before: EngineState, groups: Iterable[GroupPlan], watermarks_us: Mapping[str, int]
) -> dict[str, int]:
    """By aggregation, up to which time its windows are answered now: by the watermarks that the batch's tasks saw.

    Idle streams are carried along only after it, so what that closes is answered by the next batch.
    """
    closed: dict[str, int] = {}
    for group in groups:
        until_us = None if group.pane is None else group.pane.closed_until(watermarks_us)
        known = before.closed_us_by_group.get(group.id)
        times = [time for time in (until_us, known) if time is not None]
        if times:
            closed[group.id] = max(times)
    return closed


def kept_groups(
    groups: Iterable[GroupPlan], buckets: Iterable[BucketMeta], closed_us_by_group: Mapping[str, int]
) -> list[BucketMeta]:
    """Buckets of groups that someone may still ask for: in a window that is open, and not before all readers began."""
    group_by_store = {table.id: group for group in groups for table in group.tables}
    kept = []
    for meta in buckets:
        group = group_by_store.get(meta.store)
        if group is None or meta.upper_batch < min(user.first_batch for user in group.users):
            continue
        open_from_us = group.open_from(closed_us_by_group.get(group.id))
        if open_from_us is None or meta.max_time_us is None or meta.max_time_us >= open_from_us:
            kept.append(meta)
    return kept


def with_users(error_by_query: Mapping[str, str], groups: Iterable[GroupPlan]) -> dict[str, str]:
    """Where the rows of an aggregation could not be joined, all its users failed."""
    found = dict(error_by_query)
    for group in groups:
        if group.id in error_by_query:
            found = {user.query: error_by_query[group.id] for user in group.users} | found
    return found
