"""Random problems in the setting of CLASH Fig. 9, for benchmarks and tests."""

from __future__ import annotations

import random
from itertools import combinations

from benchmarks.paper_costs.clash import PapersCost, PapersStatistics
from dovetail.core.errors import QueryError
from dovetail.optimizer.joint.problem import Attribute, Predicate, Problem, QueryGraph, query_graph

ATTRIBUTES_PER_RELATION = 3
ROWS = 100.0
MAX_DRAWS_PER_QUERY = 50


def random_environment(relation_count: int, rng: random.Random) -> list[Predicate]:
    """All joins that queries may use. Each relation has three attributes, and each name is an attribute of three
    relations; equal names can be joined. So a relation has six partners, however many relations there are.
    """
    names = [f"a{number:03d}" for number in range(relation_count)] * ATTRIBUTES_PER_RELATION
    hands: list[list[str]] = [[]]
    while any(len(set(hand)) < ATTRIBUTES_PER_RELATION for hand in hands):
        rng.shuffle(names)
        hands = [sorted(names[number::relation_count]) for number in range(relation_count)]
    attributes = [Attribute(f"R{number:03d}", name) for number, hand in enumerate(hands) for name in hand]
    return [
        Predicate(one, other)
        for one, other in combinations(attributes, 2)
        if one.name == other.name and one.relation < other.relation
    ]


def random_queries(joins: list[Predicate], count: int, size: int, rng: random.Random) -> list[QueryGraph]:
    """Distinct queries: a random relation, then random joins to new relations until the size is reached."""
    queries: dict[tuple[Predicate, ...], QueryGraph] = {}
    relations = sorted({side.relation for join in joins for side in (join.first, join.second)})
    for _ in range(count * MAX_DRAWS_PER_QUERY):
        if len(queries) == count:
            return list(queries.values())
        joined = {rng.choice(relations)}
        predicates: list[Predicate] = []
        while len(joined) < size:
            reachable = [join for join in joins if join.touches(joined) and not join.is_within(joined)]
            if not reachable:
                break
            predicates.append(rng.choice(reachable))
            joined |= {predicates[-1].first.relation, predicates[-1].second.relation}
        if len(joined) == size:
            key = tuple(sorted(predicates))
            queries.setdefault(key, query_graph(f"q{len(queries):03d}", key))
    raise QueryError(f"these relations have fewer than {count} queries of size {size}", hint="ask for fewer queries")


def random_problem(relation_count: int, query_count: int, size: int, seed: int, parallelism: int = 1) -> Problem:
    """Equal arrival rates, and selectivity 1 / rate for every join, as the paper has them. It names no parallelism;
    with one task a store, its savings come out.
    """
    rng = random.Random(seed)
    joins = random_environment(relation_count, rng)
    queries = random_queries(joins, query_count, size, rng)
    relations = {side.relation for join in joins for side in (join.first, join.second)}
    statistics = PapersStatistics(
        dict.fromkeys(relations, ROWS), dict.fromkeys(joins, 1 / ROWS), dict.fromkeys(relations, parallelism)
    )
    return Problem(tuple(queries), PapersCost(statistics))
