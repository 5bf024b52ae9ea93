"""Random cases with outer, semi and anti joins.

Every batch is held to the oracle that knows the watermarks, as in every scenario. A last batch that moves all of them
far ahead decides all other rows: then the answers are those of DuckDB over them, whatever our front end thinks a query
means.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from random import Random

from dovetail.testing.local_session import LocalSession
from tests.support.asserts import assert_same_answers, change_queries, open_session, scratch_dir
from tests.support.cases import COPIES, EngineCase, Row, StreamCase, moment_of
from tests.support.generators.cases import START_US, CaseLimits, make_batches, make_streams
from tests.support.generators.outer_aggregates import OuterAggregateMaker
from tests.support.generators.outer_queries import OuterQueryMaker
from tests.support.generators.queries import SECOND, QueryLimits, QueryMaker
from tests.support.oracles.answers import DuckDbOracle, answers_of_table

OUTER_LIMITS = CaseLimits(
    max_streams=3, max_batches=7, max_rows=7, max_queries=5, queries=QueryLimits(max_relations=2, full_history=False)
)
LONG_OUTER_RUNS = replace(OUTER_LIMITS, max_streams=2, max_batches=20, max_rows=3, max_queries=2)
"""Many small batches: merges and expiry."""

DAY_US = 86_400 * SECOND


OUTER_GROUPS = replace(OUTER_LIMITS, queries=replace(OUTER_LIMITS.queries, aggregates=0.8))
"""Most queries ask for groups of outer, semi and anti joins."""


def random_outer_case(seed: int, limits: CaseLimits = OUTER_LIMITS) -> EngineCase:
    """Some queries are inner joins: they keep rows longer, or let them go earlier."""
    rng = Random(seed)
    streams, domains = make_streams(rng, limits)
    batches = make_batches(rng, streams, domains, limits, limits.max_rows)
    queries = []
    shape_seeds: list[int] = []
    for position in range(rng.randint(1, limits.max_queries)):
        maker = QueryMaker if rng.random() < 0.2 else OuterQueryMaker
        if limits.queries.aggregates and rng.random() < limits.queries.aggregates:
            maker = OuterAggregateMaker
        # Some are of one shape, and some of those even have the same constants: they are decided together.
        is_sibling = bool(shape_seeds) and rng.random() < limits.sibling_chance
        shape_seeds.append(rng.choice(shape_seeds) if is_sibling else rng.randrange(2**32))
        constants = Random(rng.choice([1, rng.randrange(2**32)]))
        query = maker(streams, domains, Random(shape_seeds[-1]), constants, limits.queries).query(f"q{position + 1}")
        created_at = 0 if rng.random() < 0.6 else rng.randrange(len(batches))
        dropped_at = None if rng.random() < 0.75 else rng.randint(created_at + 1, len(batches))
        queries.append(replace(query, created_at=created_at, dropped_at=dropped_at))
    return EngineCase(
        streams,
        batches,
        tuple(queries),
        partitions=rng.choice([1, 2, 2, 3]),
        key_groups=rng.choice([4, 8, 16]),
        splits=rng.choice([1, 1, 2, 3]),
        merge_fanout=rng.choice([2, 2, 3, 4]),
        max_pairs=rng.choice([1, 7, 4_000_000, 4_000_000]),
        piece_bytes=rng.choice([1, 256 << 20, 256 << 20]),
        plan_seed=rng.choice([None, rng.randrange(1 << 30)]),
        copies=rng.choice(COPIES),
    )


def flushed(case: EngineCase) -> EngineCase:
    """The case with all queries there from the start to the end, and a last batch far ahead of all others.

    Its rows are days apart, so that those of different streams never are partners.
    """
    last: dict[str, tuple[Row, ...]] = {
        stream.name: (_far_row(stream, place),) for place, stream in enumerate(case.streams) if stream.event_time
    }
    queries = tuple(replace(query, created_at=0, dropped_at=None) for query in case.queries)
    return replace(case, batches=(*case.batches, last), queries=queries)


def _far_row(stream: StreamCase, place: int) -> Row:
    moment = moment_of(START_US + (place + 10) * DAY_US)
    has_zone = (stream.event_time, "timestamp") in stream.columns
    time = moment if has_zone else moment.replace(tzinfo=None)
    return tuple(time if name == stream.event_time else None for name, _ in stream.columns)


def _run(case: EngineCase, folder: str) -> LocalSession:
    session = open_session(case, folder)
    for batch in range(len(case.batches)):
        change_queries(session, case, batch, {})
        session.push(case.tables(batch), splits=case.splits)
    return session


def check_flushed(case: EngineCase) -> None:
    """Raise CaseFailed unless all rows but those of the last batch are answered as DuckDB does."""
    ordinary = replace(case, batches=case.batches[:-1])
    last = replace(case, batches=({}, case.batches[-1]))
    with tempfile.TemporaryDirectory(prefix="dovetail-case-", dir=scratch_dir()) as folder:
        session = _run(case, folder)
        try:
            for query in case.queries:
                actual = answers_of_table(session.results(query.name))
                expected = DuckDbOracle(ordinary).expected(query, 0)
                of_last = DuckDbOracle(last).expected(query, 0)
                extra = actual - expected
                assert_same_answers(actual - (extra & of_last), expected, f"{query.name}: {query.sql}")
        finally:
            session.close()
