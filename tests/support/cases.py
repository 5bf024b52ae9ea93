"""A test case of the engine as plain data: streams, micro-batches, and queries that come and go.

Cases are values: they can be made from a seed, cut smaller, written to JSON and read back. A failure
is kept as the JSON of its smallest form, because a seed means another case once a generator changes.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dovetail.query.stream import Stream
from dovetail.query.types import SqlType

ARROW_TYPE_BY_KIND: dict[str, pa.DataType] = {
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal": pa.decimal128(10, 2),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_INNERMOST_LIST = re.compile(r"\[[^\[\]{}\"]*(?:\"[^\"]*\"[^\[\]{}\"]*)*\]")
"""For printing a row on a line."""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

CLOSED_UNTIL = "$closed_until"
"""In the batch texts of a windowed aggregation: windows that end later are not answered yet."""

COPIES = (None, "partition", "key")
"""References travel, or rows in so many copies."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class StreamCase:
    """A stream to register: columns as (name, kind), kinds as in `ARROW_TYPE_BY_KIND`."""

    name: str
    columns: tuple[tuple[str, str], ...]
    event_time: str | None
    lateness_us: int

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, ARROW_TYPE_BY_KIND[kind]) for name, kind in self.columns])

    @property
    def lateness(self) -> str:
        return f"{self.lateness_us // 1000} milliseconds"

    @property
    def stream(self) -> Stream:
        """The stream as the front end sees it."""
        types = {kind: SqlType(kind) for kind in ARROW_TYPE_BY_KIND if kind != "decimal"}
        types["decimal"] = SqlType("decimal", 10, 2)
        columns = tuple((name, types[kind]) for name, kind in self.columns)
        return Stream(self.name, columns, self.event_time, self.lateness_us)

    def table(self, rows: tuple[Row, ...]) -> pa.Table:
        arrays = [
            pa.array([row[position] for row in rows], type=ARROW_TYPE_BY_KIND[kind])
            for position, (_, kind) in enumerate(self.columns)
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def times_us(self, rows: tuple[Row, ...]) -> list[int | None]:
        """The event time of each row in microseconds since the epoch."""
        if self.event_time is None:
            return [None] * len(rows)
        position = [name for name, _ in self.columns].index(self.event_time)
        return [None if row[position] is None else micros_of(row[position]) for row in rows]


@dataclass(frozen=True)
class QueryCase:
    """A query in three dialects, and the batches at which it takes effect and stops.

    `sql` is Dovetail's text; `batch_sql` the same question for Spark batch (WITHIN spelled out as
    time conditions); `duckdb_sql` the same for DuckDB (windows spelled out, too).
    """

    name: str
    sql: str
    batch_sql: str
    duckdb_sql: str
    created_at: int = 0
    dropped_at: int | None = None
    max_results_per_batch: int | None = None


@dataclass(frozen=True)
class EngineCase:
    """Everything one run of the engine is given. `batches[i]` maps a stream to its rows of batch i.

    A query that finds more than its `max_results_per_batch` must stop with that batch, one that meets more pairs than
    `max_pairs_per_batch` may. With `copies` rows are shipped, in so many; without, references are.
    """

    streams: tuple[StreamCase, ...]
    batches: tuple[dict[str, tuple[Row, ...]], ...]
    queries: tuple[QueryCase, ...]
    partitions: int = 2
    key_groups: int = 8
    splits: int = 1
    merge_fanout: int = 4
    max_pairs: int = 4_000_000
    piece_bytes: int = 256 << 20
    plan_seed: int | None = None
    max_pairs_per_batch: int | None = None
    copies: str | None = None

    @property
    def own_file_bytes(self) -> int:
        """In some cases each query's answers have files of their own; by what is drawn anyway, so that seeds stay."""
        return 1 if self.key_groups == 4 else 4 << 20

    def tables(self, batch: int) -> dict[str, pa.Table]:
        rows_by_stream = self.batches[batch]
        return {s.name: s.table(rows_by_stream[s.name]) for s in self.streams if s.name in rows_by_stream}


@dataclass(frozen=True)
class KeptRows:
    """What lateness leaves of a case: per stream and batch the rows in time, and how many came late."""

    rows: dict[str, tuple[tuple[Row, ...], ...]]
    late_counts: dict[str, tuple[int, ...]]


def keep_rows_in_time(case: EngineCase) -> KeptRows:
    """Drop each row below its stream's watermark at the start of its batch; a NULL time is never late."""
    rows_by_stream: dict[str, tuple[tuple[Row, ...], ...]] = {}
    late_by_stream: dict[str, tuple[int, ...]] = {}
    for stream in case.streams:
        newest_us: int | None = None
        kept_batches: list[tuple[Row, ...]] = []
        late_counts: list[int] = []
        for batch in case.batches:
            rows = batch.get(stream.name, ())
            times = stream.times_us(rows)
            watermark = None if newest_us is None else newest_us - stream.lateness_us
            kept = tuple(
                row
                for row, time in zip(rows, times, strict=True)
                if time is None or watermark is None or time >= watermark
            )
            kept_batches.append(kept)
            late_counts.append(len(rows) - len(kept))
            newest_us = max([time for time in (newest_us, *times) if time is not None], default=None)
        rows_by_stream[stream.name] = tuple(kept_batches)
        late_by_stream[stream.name] = tuple(late_counts)
    return KeptRows(rows_by_stream, late_by_stream)


def watermarks_after(case: EngineCase, until: int) -> dict[str, int | None]:
    """By stream the watermark once all batches before `until` are in; None while it has no event time."""
    found: dict[str, int | None] = {}
    for stream in case.streams:
        times = [time for batch in case.batches[:until] for time in stream.times_us(batch.get(stream.name, ()))]
        newest_us = max((time for time in times if time is not None), default=None)
        found[stream.name] = None if newest_us is None else newest_us - stream.lateness_us
    return found


def micros_of(moment: datetime.datetime) -> int:
    """Microseconds since the epoch; a moment without zone counts as UTC."""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    return (zoned - EPOCH) // datetime.timedelta(microseconds=1)


def moment_of(micros: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(microseconds=micros)


def smaller_cases(case: EngineCase) -> Iterator[EngineCase]:
    """Cases with a little less in them, most promising first: the steps of `shrink_case`."""
    for position in range(len(case.queries)):
        if len(case.queries) > 1:
            yield replace(case, queries=case.queries[:position] + case.queries[position + 1 :])
    for position in range(len(case.batches)):
        yield _without_batch(case, position)
    for query in case.queries:
        for later in (replace(query, created_at=0), replace(query, dropped_at=None)):
            if later != query:
                yield replace(case, queries=tuple(later if q is query else q for q in case.queries))
    used = {s.name for s in case.streams if any(s.name in query.sql for query in case.queries)}
    if len(used) < len(case.streams):
        yield replace(case, streams=tuple(s for s in case.streams if s.name in used), batches=_only(case, used))
    for setting in (
        {"partitions": 1},
        {"key_groups": 1, "partitions": 1},
        {"splits": 1},
        {"max_pairs": 4_000_000},
        {"piece_bytes": 256 << 20},
        {"plan_seed": None},
        {"merge_fanout": 4},
        {"max_pairs_per_batch": None},
        {"copies": None},
    ):
        fewer = replace(case, **setting)
        if fewer != case:
            yield fewer
    yield from _with_fewer_rows(case)


def _without_batch(case: EngineCase, position: int) -> EngineCase:
    def moved(batch: int) -> int:
        return batch if batch <= position else batch - 1

    queries = tuple(
        replace(q, created_at=moved(q.created_at), dropped_at=None if q.dropped_at is None else moved(q.dropped_at))
        for q in case.queries
    )
    # A query that came with the batch and left after it has no batch any more.
    alive = tuple(q for q in queries if q.dropped_at is None or q.created_at < q.dropped_at)
    return replace(case, batches=case.batches[:position] + case.batches[position + 1 :], queries=alive)


def _only(case: EngineCase, names: set[str]) -> tuple[dict[str, tuple[Row, ...]], ...]:
    return tuple({name: rows for name, rows in batch.items() if name in names} for batch in case.batches)


def _with_fewer_rows(case: EngineCase) -> Iterator[EngineCase]:
    for position, batch in enumerate(case.batches):
        for name, rows in batch.items():
            cuts: list[tuple[Row, ...]] = [()] if len(rows) > 1 else []
            cuts += [rows[: len(rows) // 2], rows[len(rows) // 2 :]] if len(rows) > 3 else []
            cuts += [rows[:i] + rows[i + 1 :] for i in range(len(rows))]
            for cut in cuts:
                batches = list(case.batches)
                batches[position] = {**batch, name: cut}
                yield replace(case, batches=tuple(batches))


def case_to_json(case: EngineCase) -> str:
    document = {
        "streams": [
            {
                "name": s.name,
                "columns": [list(c) for c in s.columns],
                "event_time": s.event_time,
                "lateness_us": s.lateness_us,
            }
            for s in case.streams
        ],
        "batches": [
            {name: [[_value_to_json(value) for value in row] for row in rows] for name, rows in batch.items()}
            for batch in case.batches
        ],
        "queries": [vars(query) for query in case.queries],
        "partitions": case.partitions,
        "key_groups": case.key_groups,
        "splits": case.splits,
        "merge_fanout": case.merge_fanout,
        "max_pairs": case.max_pairs,
        "piece_bytes": case.piece_bytes,
        "plan_seed": case.plan_seed,
        "max_pairs_per_batch": case.max_pairs_per_batch,
        "copies": case.copies,
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    return _INNERMOST_LIST.sub(lambda match: " ".join(match[0].split()), text) + "\n"


def case_from_json(text: str) -> EngineCase:
    document = json.loads(text)
    streams = tuple(
        StreamCase(s["name"], tuple((n, k) for n, k in s["columns"]), s["event_time"], s["lateness_us"])
        for s in document["streams"]
    )
    kinds = {s.name: [kind for _, kind in s.columns] for s in streams}
    batches = tuple(
        {name: tuple(tuple(map(_value_from_json, kinds[name], row)) for row in rows) for name, rows in batch.items()}
        for batch in document["batches"]
    )
    return EngineCase(
        streams,
        batches,
        tuple(QueryCase(**query) for query in document["queries"]),
        document["partitions"],
        document["key_groups"],
        document["splits"],
        document["merge_fanout"],
        document["max_pairs"],
        document.get("piece_bytes", 256 << 20),
        document.get("plan_seed"),
        document.get("max_pairs_per_batch"),
        document.get("copies"),
    )


def _value_to_json(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _value_from_json(kind: str, value: Any) -> Any:
    if value is None:
        return None
    match kind:
        case "double" | "float":
            return float(value)
        case "decimal":
            return Decimal(value)
        case "date":
            return datetime.date.fromisoformat(value)
        case "timestamp" | "timestamp_ntz":
            return datetime.datetime.fromisoformat(value)
    return value
