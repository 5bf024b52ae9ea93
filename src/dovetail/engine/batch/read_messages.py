"""What the tasks of a batch tell the driver."""

from __future__ import annotations

import json

from dovetail.core.errors import StoreError
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.report import TaskReport
from dovetail.store.bucket_file import BucketMeta


def read_messages(messages: list[Message]) -> tuple[TaskReport, tuple[BucketMeta, ...]]:
    """All tasks' reports as one, and the buckets that the batch wrote."""
    whole = TaskReport()
    buckets = []
    for message in messages:
        if message.kind in (Kind.BUCKET, Kind.STORED):
            buckets.append(BucketMeta.from_json(json.loads(message.payload)))
        elif message.kind is Kind.REPORT:
            whole.add(TaskReport.from_bytes(message.payload))
    return whole, check_written(buckets)


def check_written(buckets: list[BucketMeta]) -> tuple[BucketMeta, ...]:
    """The batch's buckets, which every partition reported; two attempts of one split must not both have been used."""
    by_place: dict[tuple[str, int], BucketMeta] = {}
    for meta in buckets:
        known = by_place.setdefault(meta.place, meta)
        if known != meta:
            raise StoreError(
                f"split {meta.split} of store {meta.store} was used from two attempts: {known.path} and {meta.path}",
                hint="restart the session: the batch did not commit and runs again",
            )
    return tuple(by_place[place] for place in sorted(by_place))
