"""What the engine knows after a batch: a value, written whole with every commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dovetail.engine.bad_rows import BadRowTotals
from dovetail.engine.control.coverage import StoreHistory
from dovetail.engine.control.registry import QueryRecord, Registry
from dovetail.engine.planning.fill import Fill
from dovetail.query.stream import Stream
from dovetail.query.stream_spec import StreamSpec
from dovetail.stats.observed import ObservedStats
from dovetail.store.bad_rows import BadFile
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.state_record import State

NO_BATCH = -1


@dataclass(frozen=True)
class EngineState:
    """State after batch `batch`; a new checkpoint stands at `NO_BATCH`.

    `kept_from` says of every intermediate from which batch on it joins its members' rows, `fills` which of them are
    being filled and how far. `closed_us_by_group` says of every aggregation with windows up to which time these are
    closed and answered. `decided_us_by_stream` are the watermarks by which the last batch's tasks decided rows of outer
    and anti joins: what the driver learns after them counts in the next batch. `declared` are the streams that Dovetail
    opens itself; `first_batch_by_stream` says of streams that came later since when they are there. `observed` is not
    part of what a batch is a function of: it decides no answer, only which plans come to mind later. `bad_files` keep
    aside the rows that their streams cannot use.
    """

    batch: int = NO_BATCH
    epoch: int = 0
    change_sequence: int = 0
    registry: Registry = field(default_factory=Registry)
    max_time_us_by_stream: Mapping[str, int] = field(default_factory=dict)
    histories: Mapping[str, StoreHistory] = field(default_factory=dict)
    buckets: tuple[BucketMeta, ...] = ()
    stream_texts: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, StreamSpec] = field(default_factory=dict)
    first_batch_by_stream: Mapping[str, int] = field(default_factory=dict)
    kept_from: Mapping[str, int] = field(default_factory=dict)
    fills: Mapping[str, Fill] = field(default_factory=dict)
    decided_us_by_stream: Mapping[str, int] = field(default_factory=dict)
    closed_us_by_group: Mapping[str, int] = field(default_factory=dict)
    bad_files: tuple[BadFile, ...] = ()
    bad_row_totals: Mapping[str, BadRowTotals] = field(default_factory=dict)
    observed: ObservedStats = field(default_factory=ObservedStats, compare=False)

    def watermark_us_by_stream(self, streams: Mapping[str, Stream]) -> dict[str, int]:
        """Rows below their stream's watermark are late; partners below it can no longer come."""
        return {
            name: max_time_us - streams[name].lateness_us
            for name, max_time_us in self.max_time_us_by_stream.items()
            if name in streams
        }

    def to_stored(self) -> State:
        engine = {
            "epoch": self.epoch,
            "change_sequence": self.change_sequence,
            "queries": [record.to_json() for record in self.registry.records],
            "max_time_us_by_stream": dict(self.max_time_us_by_stream),
            "histories": {store: history.to_json() for store, history in self.histories.items()},
            "stream_texts": dict(self.stream_texts),
            "declared": [spec.to_json() for spec in self.declared.values()],
            "first_batch_by_stream": dict(self.first_batch_by_stream),
            "kept_from": dict(self.kept_from),
            "fills": {store: fill.to_json() for store, fill in self.fills.items()},
            "decided_us_by_stream": dict(self.decided_us_by_stream),
            "closed_us_by_group": dict(self.closed_us_by_group),
            "bad_row_totals": {name: totals.to_json() for name, totals in self.bad_row_totals.items()},
            "observed": self.observed.to_json(),
        }
        return State(self.batch, self.buckets, engine, self.bad_files)

    @staticmethod
    def from_stored(stored: State) -> EngineState:
        engine: dict[str, Any] = stored.engine
        return EngineState(
            batch=stored.batch,
            epoch=engine["epoch"],
            change_sequence=engine["change_sequence"],
            registry=Registry(tuple(QueryRecord.from_json(record) for record in engine["queries"])),
            max_time_us_by_stream=engine["max_time_us_by_stream"],
            histories={store: StoreHistory.from_json(record) for store, record in engine["histories"].items()},
            buckets=stored.buckets,
            stream_texts=engine["stream_texts"],
            declared={spec["name"]: StreamSpec.from_json(spec) for spec in engine["declared"]},
            first_batch_by_stream=engine["first_batch_by_stream"],
            kept_from=engine["kept_from"],
            fills={store: Fill.from_json(record) for store, record in engine["fills"].items()},
            decided_us_by_stream=engine["decided_us_by_stream"],
            closed_us_by_group=engine["closed_us_by_group"],
            bad_files=stored.bad_files,
            bad_row_totals={n: BadRowTotals.from_json(t) for n, t in engine.get("bad_row_totals", {}).items()},
            observed=ObservedStats.from_json(engine["observed"]),
        )


def stream_text(stream: Stream) -> str:
    """A stream's declaration as one line, to compare with what a checkpoint was made with."""
    columns = ", ".join(f"{name} {sql_type}" for name, sql_type in stream.columns)
    return f"{stream.name}({columns}) event_time={stream.event_time}"
