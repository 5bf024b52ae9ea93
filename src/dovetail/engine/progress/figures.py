"""What happened in a batch, as records. Whoever needs a figure of the last batch reads it here, never its print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dovetail.engine.bad_rows import BadRowTotals
from dovetail.engine.explain.records.partitions import PlacementExplained
from dovetail.engine.planning.elastic_units import UnitsNow
from dovetail.runtime.entries import Entries
from dovetail.stats.estimate import Estimate


@dataclass(frozen=True)
class Durations:
    """By the wall: until tasks could begin, until they had ended, until the batch was committed.

    Before that, `failed_s` went to tries of the batch that failed.
    """

    plan_s: float
    run_s: float
    commit_s: float
    failed_s: float = 0.0

    @property
    def total_s(self) -> float:
        return self.failed_s + self.plan_s + self.run_s + self.commit_s


@dataclass(frozen=True)
class Volume:
    """What is kept in files."""

    rows: int = 0
    size_bytes: int = 0
    buckets: int = 0


@dataclass(frozen=True)
class StreamFigures:
    """`watermark_us` is None before the first row. `rows_per_s` is by the clock, over the last batches of this process;
    None with the first one. `bad_rows` are this batch's, `bad` those of all; `kept_bad_rows` of them are kept aside.
    """

    name: str
    input_rows: int
    late_rows: int
    watermark_us: int | None
    is_idle: bool
    rows_per_s: float | None = None
    bad_rows: int = 0
    bad: BadRowTotals = field(default_factory=BadRowTotals)
    kept_bad_rows: int = 0


@dataclass(frozen=True)
class QueryFigures:
    """`output_rows` are this batch's, `total_rows` those of all batches. `work_ms` is what tasks spent on the query in
    this batch; what is found for several counts for each by what it found.
    """

    name: str
    state: str
    output_rows: int
    total_rows: int
    work_ms: float = 0.0


@dataclass(frozen=True)
class StoreFigures:
    name: str
    kept: Volume
    is_bounded: bool
    queries: tuple[str, ...]


@dataclass(frozen=True)
class GroupFigures:
    """What an aggregation keeps: rows of partial groups, in all its tables. Windows are answered up to `closed_us`."""

    name: str
    folded_rows: int
    kept: Volume
    is_bounded: bool
    closed_us: int | None
    queries: tuple[str, ...]


@dataclass(frozen=True)
class StepFigures:
    """A step of the plan: `probe_rows` came to it, of which somebody wanted the `looked_up_rows`, each once wherever it
    was sent; `matched_rows` were found. `node` is its id in plans.
    """

    node: str
    hop: int
    step: str
    probe_rows: int
    looked_up_rows: int
    matched_rows: int
    queries: tuple[str, ...]


@dataclass(frozen=True)
class UnitFigures:
    """What one partition did over all hops; its work is the rows that probe in it plus the pairs that they find."""

    partition: int
    probed_rows: int
    pairs: int
    seconds: float

    @property
    def work(self) -> int:
        return self.probed_rows + self.pairs


@dataclass(frozen=True)
class ShippedStore:
    name: str
    rows: int
    input_rows: int


@dataclass(frozen=True)
class ShippedFigures:
    """Rows that were sent to the partitions that keep them: every copy counts, those too that stay on one machine.

    `input_rows` counts each row once. Bytes are those that Spark's first exchange wrote or, where everything ran in one
    task, those of the messages. `exchanged_bytes` are those of all exchanges; None without exchange="rows", for then
    nobody measures them.
    """

    input_rows: int = 0
    size_bytes: int = 0
    exchanged_bytes: int | None = None
    rows_by_partition: tuple[int, ...] = ()
    stores: tuple[ShippedStore, ...] = ()

    @property
    def rows(self) -> int:
        return sum(self.rows_by_partition)


@dataclass(frozen=True)
class StreamEstimates:
    """What planners will use of a stream, folded over batches; `rows_per_s` is of event time."""

    name: str
    batch_rows: Estimate | None
    rows_per_s: Estimate | None
    late_share: Estimate | None


@dataclass(frozen=True)
class MatchEstimate:
    edge: str
    probability: Estimate | None


@dataclass(frozen=True)
class FailuresAfterCommit:
    """What went wrong beside batches that were committed all the same, since the process began."""

    count: int = 0
    last: str | None = None


@dataclass(frozen=True)
class BatchFigures:
    """A committed batch. `placement` and `scale` are there where placements and the number of units follow the data.

    Steps are many, and mostly nobody asks: `count_steps` is called once if somebody does.
    """

    batch: int
    finished_at: float
    durations: Durations
    epoch: int = 0
    seconds_by_part: Mapping[str, float] = field(default_factory=dict)
    streams: tuple[StreamFigures, ...] = ()
    queries: Entries[QueryFigures] = field(default_factory=lambda: Entries(QueryFigures))
    stores: tuple[StoreFigures, ...] = ()
    groups: tuple[GroupFigures, ...] = ()
    count_steps: Callable[[], tuple[StepFigures, ...]] = tuple
    units: tuple[UnitFigures, ...] = ()
    shipped: ShippedFigures = field(default_factory=ShippedFigures)
    stream_estimates: tuple[StreamEstimates, ...] = ()
    match_estimates: tuple[MatchEstimate, ...] = ()
    written: Volume = field(default_factory=Volume)
    placement: PlacementExplained | None = None
    scale: UnitsNow | None = None
    failures: FailuresAfterCommit = field(default_factory=FailuresAfterCommit)

    @cached_property
    def steps(self) -> tuple[StepFigures, ...]:
        return self.count_steps()

    @property
    def input_rows(self) -> int:
        return sum(stream.input_rows for stream in self.streams)

    def rows_of(self, stream: str) -> int:
        return sum(each.input_rows for each in self.streams if each.name == stream)

    @property
    def input_rows_per_s(self) -> float | None:
        rates = [stream.rows_per_s for stream in self.streams if stream.rows_per_s is not None]
        return sum(rates) if rates else None

    @property
    def hop_s(self) -> float:
        """What the tasks of all hops worked together."""
        return sum(seconds for part, seconds in self.seconds_by_part.items() if part.startswith("hop "))

    @property
    def source_s(self) -> float:
        """What tasks took to receive and read rows, and to keep them."""
        return sum(self.seconds_by_part.get(part, 0.0) for part in ("source", "receive", "store"))

    @property
    def slowest_over_mean(self) -> float:
        """The work of the partition that had most, over that of all on average."""
        work = [unit.work for unit in self.units]
        return max(work) * len(work) / sum(work) if sum(work) else 1.0
