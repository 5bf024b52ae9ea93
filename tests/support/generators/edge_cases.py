"""Random cases at the edges of time: rows that come as late as they may, and partners as far apart as they may be.

The general generator seldom makes a row whose only partner is about to expire; this one makes little else. Whatever is
given up a moment too early, or counts as late a moment too soon, is missed.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.support.cases import COPIES, EngineCase, QueryCase, Row, StreamCase, moment_of
from tests.support.generators.cases import START_US
from tests.support.generators.queries import SECOND

COLUMNS = (("k", "int"), ("v", "int"), ("ts", "timestamp"))


def random_edge_case(seed: int) -> EngineCase:
    """Two streams, and one or two joins of them whose bounds may differ by which stream is later."""
    rng = Random(seed)
    streams = tuple(StreamCase(name, COLUMNS, "ts", rng.choice([0, 0, 1, 2]) * SECOND) for name in "ab")
    batch_count = rng.randint(6, 12)
    bounds = [(rng.randint(0, 3), rng.randint(0, 3)) for _ in range(rng.choice([1, 1, 2]))]
    batches = _batches(rng, streams, bounds[0], batch_count)
    queries = tuple(_query(rng, f"q{number}", bound, batch_count) for number, bound in enumerate(bounds))
    return EngineCase(
        streams,
        batches,
        queries,
        partitions=rng.choice([1, 2, 3]),
        key_groups=8,
        splits=rng.choice([1, 1, 2]),
        merge_fanout=rng.choice([2, 2, 3, 4]),
        plan_seed=rng.choice([None, rng.randrange(1 << 30)]),
        copies=rng.choice(COPIES),
    )


def _batches(
    rng: Random, streams: tuple[StreamCase, ...], bound: tuple[int, int], count: int
) -> tuple[dict[str, tuple[Row, ...]], ...]:
    """A few rows a stream and batch: some go ahead, the others look for the oldest partner that may still be there."""
    newest = dict.fromkeys("ab", START_US)
    times: dict[str, list[int]] = {"a": [], "b": []}
    batches = []
    for _ in range(count):
        batch: dict[str, tuple[Row, ...]] = {}
        watermarks = {stream.name: newest[stream.name] - stream.lateness_us for stream in streams}
        for own, other in (("a", "b"), ("b", "a")):
            rows = []
            for _ in range(rng.randint(0, 3)):
                # b may be `before` a, or `after` it.
                before, after = bound if own == "b" else bound[::-1]
                edges = [time - before * SECOND for time in times[other]] + [
                    time + after * SECOND for time in times[other]
                ]
                in_time = [edge for edge in edges if edge >= watermarks[own]]
                draw = rng.random()
                if draw < 0.5 and in_time:
                    time = min(in_time) + rng.choice([0, 0, 0, 1, -1])
                elif draw < 0.65:
                    time = watermarks[own] + rng.choice([0, 0, -1])
                else:
                    time = newest[own] + rng.choice([0, 1, 1, 2]) * SECOND
                rows.append((rng.choice([1, 1, 2]), rng.randrange(6), moment_of(time)))
                times[own].append(time)
            batch[own] = tuple(rows)
        for name in "ab":
            newest[name] = max([newest[name], *times[name]])
        batches.append(batch)
    return tuple(batches)


def _query(rng: Random, name: str, bound: tuple[int, int], batch_count: int) -> QueryCase:
    before, after = bound
    sql = (
        "SELECT a.v AS av, b.v AS bv, a.k FROM a JOIN b ON a.k = b.k"
        f" AND b.ts BETWEEN a.ts - INTERVAL {before} SECONDS AND a.ts + INTERVAL {after} SECONDS"
    )
    query = QueryCase(name, sql, sql, sql)
    return replace(query, created_at=rng.choice([0, 0, 0, rng.randrange(batch_count)]))
