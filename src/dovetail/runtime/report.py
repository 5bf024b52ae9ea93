"""What tasks tell the driver: counts, files written, errors of single queries."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dovetail.core.errors import EvaluationError, charged
from dovetail.kernels.evaluate.work_limit import work_limit
from dovetail.kernels.match.summarize_codes import count_by_group, heavy_codes, smallest_codes, smallest_spread_codes
from dovetail.kernels.select.select_rows import SelectionWords, spread_rows
from dovetail.plan.query_limits import BatchLimits, Found
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.runtime.entries import Entries
from dovetail.runtime.report_fields import in_columns, kept_in_task, listed, rules_of, summed
from dovetail.runtime.stopwatch import Stopwatch
from dovetail.stats.key_sketch import SKETCH_CODES
from dovetail.stats.key_stats import MAX_HISTOGRAM_GROUPS
from dovetail.stats.selection_sample import SAMPLED_ROWS_A_BATCH
from dovetail.store.bad_rows import BadFile
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.manifest import ResultPart

STATISTICS = "statistics"
"""The part of a task's seconds that goes into counting and sampling; the other parts contain it."""


@dataclass
class StreamCount:
    stream: str
    rows: int
    late_rows: int
    max_time_us: int | None
    bad_rows: int = 0


def newest_times(counts: Iterable[StreamCount]) -> dict[str, int]:
    """By stream the newest event time in microseconds of all rows, late ones included."""
    times: dict[str, int] = {}
    for count in counts:
        if count.max_time_us is not None:
            times[count.stream] = max(count.max_time_us, times.get(count.stream, count.max_time_us))
    return times


@dataclass
class BadCount:
    """`rows` that their stream cannot use, of one kind; `example` is the reason of one of them, for people."""

    stream: str
    kind: str
    rows: int
    example: str


@dataclass
class RetriedFile:
    """Bad rows that were asked for again: taken, unless columns are `missing_columns` that some query needs now."""

    path: str
    missing_columns: list[str]


@dataclass
class UnreadFile:
    """A file of a stream's source that belongs to the batch and cannot be read."""

    stream: str
    path: str


@dataclass
class SelectionCount:
    """`passed_rows` of a store's `rows` pass the selection; rows that nobody wants are among them."""

    store: str
    selection: str
    rows: int
    passed_rows: int


@dataclass
class QuerySets:
    """Some of the `rows` that came for a store, wanted or not, with a bit for each of its tested selections.

    Selections are known by their places in the plan; `failed_places` have no bits. `bits` are hexadecimal.
    """

    store: str
    rows: int
    sampled_rows: int
    failed_places: list[int]
    bits: str


def sample_query_sets(store: StorePlan, selections: SelectionWords) -> list[QuerySets]:
    """Nothing where there is nothing to unite: what a single selection passes is counted anyway."""
    if selections.count - len(selections.failed) < 2 or selections.length == 0:
        return []
    rows = spread_rows(selections.length, SAMPLED_ROWS_A_BATCH)
    bits = selections.sample(rows).hex()
    return [QuerySets(store.id, selections.length, len(rows), sorted(selections.failed), bits)]


@dataclass
class KeyCount:
    """The keys of a bucket's index: entries per group of codes, frequent codes, and the smallest distinct ones."""

    store: str
    index: str
    rows: int
    rows_by_group: list[int]
    heavy_codes: list[int]
    heavy_rows: list[int]
    smallest_codes: list[int]


def count_keys(store: str, index: IndexPlan, codes: npt.NDArray[np.uint64], group_count: int) -> KeyCount:
    """`codes` ascend. Those of placed keys are not spread evenly: only once turned, the smallest are a sample."""
    heavy = heavy_codes(codes)
    smallest = smallest_codes if index.placing is None else smallest_spread_codes
    return KeyCount(
        store,
        index.id,
        len(codes),
        count_by_group(codes, min(group_count, MAX_HISTOGRAM_GROUPS)).tolist(),
        heavy.codes.tolist(),
        heavy.counts.tolist(),
        smallest(codes, SKETCH_CODES).tolist(),
    )


@dataclass
class KeyGroups:
    """Some of the `rows` stored for a store, with a key group for each of its uses (-1: the use does not place it).

    `groups` are 16-bit integers by use and row, in base 64.
    """

    store: str
    rows: int
    sampled_rows: int
    uses: list[str]
    groups: str


@dataclass
class StepCount:
    """`node` was probed by `probe_rows` rows (or partial results) and found `matched_rows`.

    Some leg wants `wanted_rows` of the probing rows; they have `near_rows` pairs of equal code within the loosest
    bounds, whatever the legs' selections say. Where routing sends a probing row to several partitions, each of these
    `copies` is counted, and finds other pairs.
    """

    node: str
    hop: int
    probe_rows: int
    matched_rows: int
    wanted_rows: int = 0
    near_rows: int = 0
    copies: int = 1


@dataclass
class UnitWork:
    """What one partition did in one hop: rows that probed, pairs of equal code and near enough times, seconds."""

    partition: int
    hop: int
    probed_rows: int = 0
    pairs: int = 0
    seconds: float = 0.0


@dataclass
class MatchSample:
    """A sampled join: `matches` of the `pairs` that time allows, give or take the error; 0 if all was counted."""

    edge: str
    matches: float
    pairs: float
    relative_error: float


@dataclass
class GroupCount:
    """`folded_rows` joined rows went into an aggregation, `kept_rows` rows of partial groups into its tables."""

    group: str
    folded_rows: int = 0
    kept_rows: int = 0


@dataclass
class ShippedCount:
    """What a partition was sent of a store's rows: `home_rows` of these `rows` are at home there."""

    store: str
    partition: int
    rows: int = 0
    home_rows: int = 0
    message_bytes: int = 0


@dataclass
class Shuffled:
    """What one exchange of Spark wrote, by its own metrics."""

    stage: int
    records: int
    written_bytes: int


@dataclass
class QueryFailure:
    """The query's answers of this batch are void; it is quarantined with this error."""

    query: str
    error: str


@dataclass
class MergedBuckets:
    """`replaced` are the keys of the buckets that it was made of."""

    merged: BucketMeta
    replaced: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"merged": self.merged.to_json(), "replaced": self.replaced}

    @staticmethod
    def from_json(record: dict[str, Any]) -> MergedBuckets:
        return MergedBuckets(BucketMeta.from_json(record["merged"]), tuple(record["replaced"]))


@dataclass
class TaskReport:
    """Filled while a task runs, sent once at its end.

    `void_queries` failed or passed a limit in this task: their answers of this batch will not count, so nobody works on
    them any more. The driver knows them by `failures`, and by `found`. Those that were void already when the task began
    are in `left_out`, too: if the task that found them so is run again it may find otherwise.
    """

    streams: list[StreamCount] = listed(StreamCount)
    bad_rows: list[BadCount] = listed(BadCount)
    bad_files: list[BadFile] = listed(BadFile)
    retried: list[RetriedFile] = listed(RetriedFile)
    unread: list[UnreadFile] = listed(UnreadFile)
    selections: Entries[SelectionCount] = in_columns(SelectionCount)
    query_sets: list[QuerySets] = listed(QuerySets)
    keys: list[KeyCount] = listed(KeyCount)
    key_groups: list[KeyGroups] = listed(KeyGroups)
    steps: Entries[StepCount] = in_columns(StepCount)
    work: list[UnitWork] = listed(UnitWork)
    samples: list[MatchSample] = listed(MatchSample)
    results: list[ResultPart] = listed(ResultPart)
    failures: list[QueryFailure] = listed(QueryFailure)
    merges: list[MergedBuckets] = listed(MergedBuckets, MergedBuckets.to_json, MergedBuckets.from_json)
    groups: list[GroupCount] = listed(GroupCount)
    shipped: list[ShippedCount] = listed(ShippedCount)
    shuffled: list[Shuffled] = listed(Shuffled)
    seconds_by_part: dict[str, float] = summed()
    found: dict[str, Found] = summed(vars, lambda record: Found(**record))
    left_out: list[str] = listed(str, str, str)
    void_queries: set[str] = kept_in_task(set)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add what is done inside to the seconds of `part`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            taken_s = time.perf_counter() - began
            self.seconds_by_part[part] = self.seconds_by_part.get(part, 0.0) + taken_s

    def leave_out(self, queries: Set[str]) -> None:
        """Tasks before this one found these queries void."""
        self.left_out += sorted(queries)
        self.void_queries |= queries

    def fail(self, queries: Set[str], error: Exception) -> None:
        """These queries' answers of the batch are void; raises what is nobody's fault, such as a broken file."""
        error = charged(error)
        known = {failure.query for failure in self.failures}
        self.failures += [QueryFailure(query, str(error)) for query in sorted(queries - known)]
        self.void_queries |= queries

    @contextmanager
    def charging(self, queries: Set[str]) -> Iterator[None]:
        """Whatever goes wrong inside is these queries' failure: what is done there is done for nobody else.

        An expression that several share fails for all of them. What else goes wrong where they share the work is the
        fault of one: the batch fails, and the driver finds out which.
        """
        try:
            yield
        except Exception as error:
            if len(queries) > 1 and not isinstance(error, EvaluationError):
                raise
            self.fail(queries, error)

    def count(self, query: str, found: Found, limits: BatchLimits) -> bool:
        """Note what a query found; False if that is more than it may find in all tasks together."""
        known = self.found.get(query)
        whole = self.found[query] = found if known is None else known + found
        if limits.of(query).are_passed_by(whole):
            self.void_queries.add(query)
            return False
        return True

    @contextmanager
    def working_for(self, queries: Collection[str], limits: BatchLimits) -> Iterator[None]:
        """Charge them the time that is spent inside, in equal shares; who had too much of it is void from then on.

        An evaluation inside is given up once none of them has time left.
        """
        watch = Stopwatch()
        try:
            with work_limit(self.left_ms(queries, limits)):
                yield
        finally:
            self.spend(queries, watch.lap(), limits)

    def left_ms(self, queries: Collection[str], limits: BatchLimits) -> float | None:
        """What one of them may work at most before it is stopped; None: as long as it takes.

        What is done for no query, such as the index of an intermediate, gets what any query may take.
        """
        if not queries:
            return limits.longest_ms
        left = 0.0
        for query in queries:
            most_ms, found = limits.of(query).ms, self.found.get(query)
            if most_ms is None:
                return None
            left = max(left, most_ms - (0.0 if found is None else found.ms))
        return left

    def spend(self, queries: Collection[str], taken_s: float, limits: BatchLimits) -> None:
        share_ms = taken_s * 1e3 / max(len(queries), 1)
        for query in queries:
            self.count(query, Found(ms=share_ms), limits)

    def add(self, other: TaskReport) -> None:
        """Put another task's report to this one."""
        for name, rule in _RULES.items():
            rule.add(getattr(self, name), getattr(other, name))

    def to_bytes(self) -> bytes:
        record = {name: rule.to_json(getattr(self, name)) for name, rule in _RULES.items()}
        return json.dumps(record, separators=(",", ":")).encode()

    @staticmethod
    def from_bytes(payload: bytes) -> TaskReport:
        record: dict[str, Any] = json.loads(payload)
        return TaskReport(**{name: rule.from_json(record[name]) for name, rule in _RULES.items()})


_RULES = rules_of(TaskReport)
