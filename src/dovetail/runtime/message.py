"""What travels between the operators of a batch: a few large binary rows, each for one partition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    BUCKET = 0  # meta of a bucket written in this batch; every partition of every hop gets it
    PARTIAL = 1  # partial results for a probe node of the next hop
    REPORT = 2  # what happened, for the driver
    STORED = 3  # meta of a bucket of an intermediate: for the driver, as nobody probes it before the next batch
    GROUPS = 4  # partial groups of an aggregation for the partition of the groups; the last hop takes them
    TIMES = 5  # how far streams are in event time after this batch: for whoever decides rows or closes windows
    ROWS = 6  # rows of a store for the partition that keeps them; only where rows are shipped
    FAILED = 7  # selections and keys of a store that failed on rows of one source task: for all that keep its rows
    VOID = 8  # queries that failed or passed a limit in a task: nobody after it works for them


@dataclass(frozen=True)
class Message:
    target: int
    kind: Kind
    payload: bytes


def void_messages(queries: Set[str], partitions: int) -> Iterator[Message]:
    """Tell all partitions that the answers of these queries will not count; nothing if there are none."""
    if queries:
        payload = json.dumps(sorted(queries)).encode()
        for partition in range(partitions):
            yield Message(partition, Kind.VOID, payload)
