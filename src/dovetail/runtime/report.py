"""What tasks tell the driver: counts, files written, errors of single queries."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from dovetail.store.bucket_file import BucketMeta
from dovetail.store.manifest import ResultFile


@dataclass
class StreamCount:
    stream: str
    rows: int
    late_rows: int
    max_time_us: int | None


@dataclass
class StepCount:
    """`node` was probed by `probe_rows` rows (or partial results) and found `matched_rows`."""

    node: str
    hop: int
    probe_rows: int
    matched_rows: int


@dataclass
class QueryFailure:
    """The query's answers of this batch are void; it is quarantined with this error."""

    query: str
    error: str


@dataclass
class MergedBuckets:
    merged: BucketMeta
    replaced_paths: tuple[str, ...]


@dataclass
class TaskReport:
    """Filled while a task runs, sent once at its end."""

    streams: list[StreamCount] = field(default_factory=list)
    steps: list[StepCount] = field(default_factory=list)
    results: list[ResultFile] = field(default_factory=list)
    failures: list[QueryFailure] = field(default_factory=list)
    merges: list[MergedBuckets] = field(default_factory=list)
    seconds_by_part: dict[str, float] = field(default_factory=dict)

    def fail(self, queries: set[str], error: Exception) -> None:
        known = {failure.query for failure in self.failures}
        self.failures += [QueryFailure(query, str(error)) for query in sorted(queries - known)]

    @property
    def failed_queries(self) -> set[str]:
        return {failure.query for failure in self.failures}

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @staticmethod
    def from_bytes(payload: bytes) -> TaskReport:
        record: dict[str, Any] = json.loads(payload)
        return TaskReport(
            streams=[StreamCount(**entry) for entry in record["streams"]],
            steps=[StepCount(**entry) for entry in record["steps"]],
            results=[ResultFile(**entry) for entry in record["results"]],
            failures=[QueryFailure(**entry) for entry in record["failures"]],
            merges=[
                MergedBuckets(BucketMeta.from_json(entry["merged"]), tuple(entry["replaced_paths"]))
                for entry in record["merges"]
            ],
            seconds_by_part=record["seconds_by_part"],
        )
