"""Random cases of plain chains over a few batches more: nearly every one keeps intermediates and fills them.

The general generator seldom makes a join that could be kept; this one makes little else, so that plans which come and
go, fills, users that come in the middle of one, merges and expiry meet often.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

from tests.support.cases import COPIES, EngineCase, QueryCase, Row, StreamCase, moment_of
from tests.support.generators.cases import START_US
from tests.support.generators.plans import sees_fills_through
from tests.support.generators.queries import SECOND

COLUMNS = (("k", "int"), ("j", "int"), ("v", "int"), ("ts", "timestamp"))
_JOINS = (("a", "b", "k"), ("b", "c", "j"), ("c", "d", "k"))


def random_chain_case(seed: int) -> EngineCase:
    rng = Random(seed)
    names = "abcd"[: rng.choice([3, 3, 4])]
    lateness_us = rng.choice([0, 1, 2]) * SECOND
    streams = tuple(StreamCase(name, COLUMNS, "ts", lateness_us) for name in names)
    batch_count = rng.randint(9, 14)
    key_count = rng.choice([3, 5])
    batches = tuple(
        {name: _rows(rng, batch, key_count) for name in names if rng.random() < 0.9} for batch in range(batch_count)
    )
    kept_columns = rng.random() < 0.7
    queries = tuple(
        _with_times(rng, _query(rng, f"q{number}", names, is_plain=kept_columns), batch_count)
        for number in range(rng.randint(1, 4))
    )
    return EngineCase(
        streams,
        batches,
        queries,
        partitions=rng.choice([1, 2, 3]),
        key_groups=8,
        splits=rng.choice([1, 1, 2]),
        merge_fanout=rng.choice([2, 2, 3]),
        max_pairs=rng.choice([1, 4_000_000]),
        plan_seed=rng.randrange(1 << 30),
        copies=rng.choice(COPIES),
    )


def random_fill_case(seed: int) -> EngineCase:
    """A chain of three streams that is kept late, filled in pieces and then asked: nobody else keeps its rows."""
    rng = Random(seed)
    plan_seed = next(each for each in iter(lambda: rng.randrange(1 << 30), None) if sees_fills_through(each))
    batch_count = rng.randint(9, 12)
    return EngineCase(
        tuple(StreamCase(name, COLUMNS, "ts", SECOND) for name in "abc"),
        tuple({name: _rows(rng, batch, 2, least=2) for name in "abc"} for batch in range(batch_count)),
        (_query(rng, "q0", "abc", is_plain=True),),
        partitions=rng.choice([1, 2]),
        key_groups=8,
        merge_fanout=rng.choice([2, 2, 3]),
        plan_seed=plan_seed,
        copies=rng.choice(COPIES),
    )


def _rows(rng: Random, batch: int, key_count: int, least: int = 0) -> tuple[Row, ...]:
    """A second of event time a batch, a little out of order."""
    return tuple(
        (
            rng.randrange(key_count),
            None if rng.random() < 0.05 else rng.randrange(key_count),
            rng.randrange(6),
            moment_of(START_US + batch * SECOND + rng.randrange(-5, 5) * SECOND // 4),
        )
        for _ in range(rng.randint(least, 4))
    )


def _query(rng: Random, name: str, names: str, *, is_plain: bool) -> QueryCase:
    """`is_plain` queries read the same columns and select nothing, so that one store of a join serves them all."""
    conditions = [f"{one}.{key} = {other}.{key}" for one, other, key in _JOINS if other in names]
    bound_s = rng.choice([None, None, None, 3, 6])
    if bound_s is not None:
        for one, other in pairwise(names):
            lower = f"{one}.ts - INTERVAL {bound_s} SECONDS"
            conditions.append(f"{other}.ts BETWEEN {lower} AND {one}.ts + INTERVAL {bound_s} SECONDS")
    outputs = [f"{each}.v" for each in names]
    if not is_plain:
        outputs = rng.sample(outputs, rng.randint(1, len(outputs)))
        conditions += [f"{each}.v > {rng.randrange(3)}" for each in names if rng.random() < 0.2]
        conditions += ["a.v <= b.v"] * (rng.random() < 0.3)
    shown = ", ".join(f"{output} AS o{place}" for place, output in enumerate(outputs))
    sql = f"SELECT {shown} FROM {' CROSS JOIN '.join(names)} WHERE {' AND '.join(conditions)}"
    return QueryCase(name, sql, sql, sql)


def _with_times(rng: Random, query: QueryCase, batch_count: int) -> QueryCase:
    created_at = rng.choice([0, 0, 0, rng.randrange(batch_count)])
    dropped_at = rng.randint(created_at + 1, batch_count) if rng.random() < 0.2 else None
    return replace(query, created_at=created_at, dropped_at=dropped_at)
