"""Random engine cases: streams, data and query sets that are small and likely to disagree.

`random_case(seed)` is the fast form, for thousands of cases. `engine_cases()` is the same generator
under hypothesis, which then shrinks what fails.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.support.cases import COPIES, EngineCase, QueryCase, Row, StreamCase, micros_of, moment_of
from tests.support.generators.aggregates import AggregateMaker
from tests.support.generators.queries import DEFAULT_QUERY_LIMITS, SECOND, QueryLimits, QueryMaker

START_US = micros_of(datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC))
BIG = 2**60

# A domain is a pool of values that several columns share, so that joins on them match.
POOLS: dict[str, tuple[tuple[str, ...], tuple[Any, ...]]] = {
    "integers": (("smallint", "int", "bigint"), (0, 1, 2, 3, -1, 5)),
    "big": (("bigint",), (BIG, BIG + 1, BIG - 1, -BIG, 7)),  # doubles cannot tell these apart
    "numbers": (("int", "bigint", "decimal", "double"), (0, 1, 2, 3, -2)),
    "fractions": (("decimal", "double"), (0.25, 0.5, 1.75, -1.25, 0)),
    "floats": (("double",), (0.0, -0.0, 1.5, float("nan"), float("inf"))),
    "words": (("string",), ("a", "b", "B", "", "ab", "a ", "ä", "a,b")),
    "days": (("date",), tuple(datetime.date(2024, 1, day) for day in (1, 2, 3))),
    "flags": (("boolean",), (True, False)),
    "moments": (("timestamp",), tuple(moment_of(START_US + s * SECOND) for s in (0, 1, 2, 5))),
}
FIRST_DOMAINS = ("integers", "integers", "integers", "numbers", "words", "words", "big", "days", "fractions", "floats")
VALUE_COLUMNS = (
    ("v", ("int", "bigint", "double", "decimal", "smallint", "float")),
    ("n", ("int", "decimal")),
    ("s", ("string",)),
    ("f", ("boolean",)),
    ("d", ("date",)),
    ("u", ("timestamp",)),
)
POOL_BY_KIND: dict[str, tuple[Any, ...]] = {
    "smallint": (0, 1, 2, 3, 4, 5, -3),
    "int": (0, 1, 2, 3, 4, 5, -3, 100),
    "bigint": (0, 1, 2, 3, 4, 5, -3, 2**40),
    "float": (0.0, 0.5, 1.25, 2.0, 3.5, -1.0),
    "double": (0.0, 0.5, 1.25, 2.0, 3.5, -1.0, 1e10),
    "decimal": tuple(Decimal(text) for text in ("0.00", "0.50", "1.25", "2.00", "3.75", "-1.00")),
    "string": ("a", "b", "B", "", "ab", "ba", "ä"),
    "boolean": (True, False),
    "date": tuple(datetime.date(2024, 1, day) for day in (1, 2, 3, 4)),
    "timestamp": tuple(moment_of(START_US + s * SECOND // 2) for s in range(0, 40, 3)),
}


@dataclass(frozen=True)
class CaseLimits:
    """How large a case may grow, and what it may hold."""

    min_streams: int = 1
    max_streams: int = 4
    max_batches: int = 6
    max_queries: int = 6
    max_rows: int = 10
    late_rows: bool = True
    late_queries: bool = True
    sibling_chance: float = 0.45
    queries: QueryLimits = DEFAULT_QUERY_LIMITS
    stream_name: str = "s"
    """A number comes after it. Cases that run in one session have names of their own."""


DEFAULT_LIMITS = CaseLimits()
"""A bit of everything."""

LONG_RUNS = CaseLimits(max_batches=25, max_rows=4, max_queries=4, queries=QueryLimits(3, full_history=False))
"""Many small batches: merges and expiry."""

LONE_WINDOWS = CaseLimits(
    max_streams=2, max_batches=12, max_rows=3, max_queries=1, queries=QueryLimits(2, False, selections=False)
)
"""One bounded query a case: no other query keeps what it lets expire too early."""

LATE_SIBLINGS = CaseLimits(
    max_streams=2,
    max_batches=10,
    max_rows=4,
    max_queries=4,
    sibling_chance=1.0,
    queries=QueryLimits(3, False, selections=False),
)
"""Queries of one shape and other windows that come in mid-run: a later one may want what is gone already."""

CHAINS = CaseLimits(
    min_streams=3,
    max_streams=5,
    max_batches=8,
    max_rows=5,
    max_queries=4,
    sibling_chance=0.7,
    queries=QueryLimits(5, hop_windows=False, selections=False, distinct_streams=True),
)
"""Joins of three to five different streams: what intermediates are for."""

GROUPS = CaseLimits(max_streams=3, max_queries=4, queries=QueryLimits(3, aggregates=1.0))
"""Queries for groups only, running and windowed."""

CLOSING_GROUPS = CaseLimits(
    max_streams=2,
    max_batches=12,
    max_rows=4,
    max_queries=3,
    queries=QueryLimits(2, full_history=False, selections=False, aggregates=1.0),
)
"""Many small batches under bounded queries: windows close one after the other."""

GROUPS_AMONG_ROWS = CaseLimits(queries=QueryLimits(3, aggregates=0.5))
"""Groups beside queries for rows, over the same stores."""

THETAS = CaseLimits(
    max_rows=8, max_queries=5, sibling_chance=0.6, queries=QueryLimits(4, selections=False, theta_chance=0.7)
)
"""Joins by inequalities, bands, time and any expression, alone or beside equal keys."""

THETA_CHAINS = replace(CHAINS, queries=replace(CHAINS.queries, theta_chance=0.3))
"""Longer joins, some of their edges without equal keys: parts of them may be kept as intermediates."""


def random_case(seed: int, limits: CaseLimits = DEFAULT_LIMITS) -> EngineCase:
    return make_case(Random(seed), limits)


def engine_cases(limits: CaseLimits = DEFAULT_LIMITS) -> st.SearchStrategy[EngineCase]:
    """The generator under hypothesis: every draw is recorded, so failures shrink."""
    return st.randoms(use_true_random=False).map(lambda rng: make_case(rng, limits))


def make_case(rng: Random, limits: CaseLimits) -> EngineCase:
    streams, domains = make_streams(rng, limits)
    max_relations = rng.choice([3, 4, 4, 5] if limits.queries.distinct_streams else [2, 3, 3, 4, 5])
    query_limits = replace(limits.queries, max_relations=min(max_relations, limits.queries.max_relations))
    # Results grow with the power of the relations: fewer rows where more of them join.
    max_rows = min(limits.max_rows, {2: 10, 3: 8, 4: 5, 5: 4}[query_limits.max_relations])
    batches = make_batches(rng, streams, domains, limits, max_rows)
    queries = make_queries(
        rng, streams, domains, query_limits, rng.randint(1, limits.max_queries), limits.sibling_chance
    )
    if limits.late_queries:
        queries = tuple(_with_times(rng, query, len(batches)) for query in queries)
    return EngineCase(
        streams,
        batches,
        queries,
        partitions=rng.choice([1, 2, 2, 3]),
        key_groups=rng.choice([4, 8, 8, 16]),
        splits=rng.choice([1, 1, 2, 3]),
        merge_fanout=rng.choice([2, 2, 3, 4]),
        max_pairs=rng.choice([1, 7, 4_000_000, 4_000_000]),
        piece_bytes=rng.choice([1, 256 << 20, 256 << 20]),
        plan_seed=rng.choice([None, rng.randrange(1 << 30)]),
        copies=rng.choice(COPIES),
    )


def make_streams(rng: Random, limits: CaseLimits) -> tuple[tuple[StreamCase, ...], dict[tuple[str, str], str]]:
    """Streams, and the domain of each key column by (stream, column)."""
    first = rng.choice(FIRST_DOMAINS)
    second = rng.choice([name for name in POOLS if name != first])
    has_shared_names = rng.random() < 0.6
    time_kind = "timestamp_ntz" if rng.random() < 0.1 else "timestamp"
    streams: list[StreamCase] = []
    domains: dict[tuple[str, str], str] = {}
    for number in range(1, rng.randint(limits.min_streams, limits.max_streams) + 1):
        name = f"{limits.stream_name}{number}"
        suffix = "" if has_shared_names else str(number)
        columns: list[tuple[str, str]] = []
        keys = [("k", first)] + [("j", second)] * (rng.random() < 0.6) + [("m", first)] * (rng.random() < 0.2)
        for stem, domain in keys:
            columns.append((stem + suffix, rng.choice(POOLS[domain][0])))
            domains[name, stem + suffix] = domain
        columns += [(stem + suffix, rng.choice(kinds)) for stem, kinds in VALUE_COLUMNS if rng.random() < 0.5]
        has_time = number == 1 or rng.random() < 0.9
        columns += [("ts" + suffix, time_kind)] * has_time
        rng.shuffle(columns)
        lateness = rng.choice([0, 1, 2, 5]) * SECOND
        streams.append(StreamCase(name, tuple(columns), "ts" + suffix if has_time else None, lateness))
    return tuple(streams), domains


def make_batches(
    rng: Random,
    streams: Sequence[StreamCase],
    domains: dict[tuple[str, str], str],
    limits: CaseLimits,
    max_rows: int,
) -> tuple[dict[str, tuple[Row, ...]], ...]:
    step_us = rng.choice([1, 2, 2, 3]) * SECOND
    pools = {name: tuple(rng.sample(values, min(5, len(values)))) for name, (_, values) in POOLS.items()}
    pool_by_column = {column: pools[domain] for column, domain in domains.items()}
    makers = {stream.name: _RowMaker(rng, stream, pool_by_column, limits.late_rows, step_us) for stream in streams}
    batches: list[dict[str, tuple[Row, ...]]] = []
    for position in range(rng.randint(1, limits.max_batches)):
        batch: dict[str, tuple[Row, ...]] = {}
        for stream in streams:
            if rng.random() < 0.12:
                continue
            count = 0 if rng.random() < 0.1 else rng.randint(1, max_rows)
            batch[stream.name] = makers[stream.name].rows(START_US + position * step_us, count)
        batches.append(batch)
    return tuple(batches)


class _RowMaker:
    """Makes the rows of one stream: few distinct values, skew, NULLs, duplicates, disorder."""

    def __init__(
        self,
        rng: Random,
        stream: StreamCase,
        pool_by_column: dict[tuple[str, str], tuple[Any, ...]],
        late_rows: bool,
        step_us: int,
    ) -> None:
        self.rng = rng
        self.stream = stream
        self.late_rows = late_rows
        self.step_us = step_us
        self.newest_us: int | None = None
        self.has_zone = (stream.event_time, "timestamp") in stream.columns
        self.null_chance = {name: rng.choice([0.0, 0.0, 0.1, 0.3]) for name, _ in stream.columns}
        self.pools: dict[str, tuple[Any, ...]] = {}
        for name, kind in stream.columns:
            if name == stream.event_time:
                continue
            shared = pool_by_column.get((stream.name, name))
            pool = POOL_BY_KIND[kind] if shared is None else _as_kind(kind, shared)
            size = rng.randint(2, len(pool) if shared is None else min(4, len(pool)))
            self.pools[name] = pool[:size] + (pool[:1] * rng.choice([0, 0, 3, 10]))  # the repeats are skew

    def rows(self, batch_us: int, count: int) -> tuple[Row, ...]:
        """The rows of the batch that begins at `batch_us`; the next call sees them as earlier."""
        made: list[Row] = []
        for _ in range(count):
            if made and self.rng.random() < 0.15:
                made.append(self.rng.choice(made))
            else:
                made.append(tuple(self._value(name, batch_us) for name, _ in self.stream.columns))
        times = [time for time in self.stream.times_us(tuple(made)) if time is not None]
        self.newest_us = max([*times, self.newest_us] if self.newest_us is not None else times, default=None)
        return tuple(made)

    def _value(self, name: str, batch_us: int) -> Any:
        if name == self.stream.event_time:
            return self._event_time(batch_us)
        if self.rng.random() < self.null_chance[name]:
            return None
        return self.rng.choice(self.pools[name])

    def _event_time(self, batch_us: int) -> datetime.datetime | None:
        micros = self._event_time_us(batch_us)
        if micros is None:
            return None
        return moment_of(micros) if self.has_zone else moment_of(micros).replace(tzinfo=None)

    def _event_time_us(self, batch_us: int) -> int | None:
        rng = self.rng
        draw = rng.random()
        if draw < 0.03:
            return None
        if draw < 0.15 and self.newest_us is not None:
            # The edge between late and in time, where expiry must not have taken a partner yet.
            watermark = self.newest_us - self.stream.lateness_us
            return watermark - 1 if self.late_rows and rng.random() < 0.3 else watermark
        halves = rng.randint(0, max(0, self.step_us * 2 // SECOND - 1))
        micros = batch_us + halves * SECOND // 2
        if draw < 0.3:
            micros -= rng.randint(0, self.stream.lateness_us * 2 // SECOND) * SECOND // 2
        elif draw < 0.4 and self.late_rows:
            micros -= self.stream.lateness_us + rng.choice([1, self.step_us, 3 * self.step_us])
        elif draw < 0.45:
            micros += 1  # next to a bound
        return micros


def _as_kind(kind: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if kind == "decimal":
        return tuple(Decimal(str(value)).quantize(Decimal("0.01")) for value in values)
    return tuple(float(value) for value in values) if kind in ("double", "float") else values


def make_queries(
    rng: Random,
    streams: Sequence[StreamCase],
    domains: dict[tuple[str, str], str],
    limits: QueryLimits,
    count: int,
    sibling_chance: float,
) -> tuple[QueryCase, ...]:
    """Queries of which many are siblings: one shape, other constants. Sharing lives from those."""
    queries: list[QueryCase] = []
    shape_seeds: list[int] = []
    for position in range(count):
        is_sibling = bool(shape_seeds) and rng.random() < sibling_chance
        shape_seed = rng.choice(shape_seeds) if is_sibling else rng.randrange(2**32)
        shape_seeds.append(shape_seed)
        constants = Random(rng.choice([1, rng.randrange(2**32)]))
        kind = AggregateMaker if limits.aggregates and rng.random() < limits.aggregates else QueryMaker
        maker = kind(streams, domains, Random(shape_seed), constants, limits)
        queries.append(maker.query(f"q{position + 1}"))
    return tuple(queries)


def _with_times(rng: Random, query: QueryCase, batch_count: int) -> QueryCase:
    created_at = 0 if rng.random() < 0.6 else rng.randrange(batch_count)
    dropped_at = None if rng.random() < 0.75 else rng.randint(created_at + 1, batch_count)
    return replace(query, created_at=created_at, dropped_at=dropped_at)


def split_again(rng: Random, case: EngineCase) -> EngineCase:
    """The same rows in other batches and another order, with a lateness that keeps all of them."""
    count = rng.randint(1, 6)
    batches: list[dict[str, tuple[Row, ...]]] = [{} for _ in range(count)]
    for stream in case.streams:
        rows = [row for batch in case.batches for row in batch.get(stream.name, ())]
        rng.shuffle(rows)
        for row in rows:
            batch = batches[rng.randrange(count)]
            batch[stream.name] = (*batch.get(stream.name, ()), row)
    return replace(
        nothing_late(case), batches=tuple(batches), partitions=rng.choice([1, 2, 3]), splits=rng.choice([1, 2])
    )


def nothing_late(case: EngineCase) -> EngineCase:
    """The case with all queries there from the start to the end and a lateness beyond all its times."""
    streams = tuple(replace(stream, lateness_us=3600 * SECOND) for stream in case.streams)
    queries = tuple(replace(query, created_at=0, dropped_at=None) for query in case.queries)
    return replace(case, streams=streams, queries=queries)


def one_query_cases(case: EngineCase) -> tuple[EngineCase, ...]:
    """The same data for each query alone."""
    return tuple(replace(case, queries=(query,)) for query in case.queries)
