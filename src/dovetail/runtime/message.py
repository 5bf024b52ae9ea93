"""What travels between the operators of a batch: a few large binary rows, each for one partition."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    BUCKET = 0  # meta of a bucket written in this batch; every partition of every hop gets it
    PARTIAL = 1  # partial results for a probe node of the next hop
    REPORT = 2  # what happened, for the driver
    STORED = 3  # meta of a bucket of an intermediate: for the driver, as nobody probes it before the next batch
    TIMES = 4  # by stream the newest event time that one source task saw; every partition of every hop gets it


@dataclass(frozen=True)
class Message:
    target: int
    kind: Kind
    payload: bytes
