"""Plans by trying everything: small problems only, slow on purpose, no search idea shared with the solvers."""

from __future__ import annotations

import math
import random
from itertools import chain, combinations, product

from benchmarks.paper_costs.clash import PapersCost, PapersStatistics
from dovetail.optimizer.joint.problem import Predicate, Problem, SubJoin, equality, query_graph
from dovetail.optimizer.joint.solvers.flow import Flow, build_flow

MAX_COMBINATIONS = 300_000


class UpkeepCost(PapersCost):
    """The papers' costs, and a price per stored row of an intermediate."""

    def __init__(self, statistics: PapersStatistics, cost_per_row: float) -> None:
        super().__init__(statistics)
        self.cost_per_row = cost_per_row

    def upkeep_cost(self, intermediate: SubJoin) -> float:
        return self.cost_per_row * self.rows(intermediate)


def count_combinations(flow: Flow) -> int:
    """A bound on the plans to try: ways to choose partitionings, intermediates and orders."""
    choices = math.prod(len(store.partitionings) * (1 if store.is_base else 2) for store in flow.stores)
    return choices * math.prod(len(list(flow.paths(demand))) for demand in flow.demands)


def least_cost(problem: Problem) -> float:
    flow = build_flow(problem)
    room = problem.room_for_intermediates()
    all_paths = [list(flow.paths(demand)) for demand in flow.demands]
    intermediates = [number for number, store in enumerate(flow.stores) if not store.is_base]
    best = math.inf
    for kept in chain.from_iterable(combinations(intermediates, size) for size in range(len(intermediates) + 1)):
        if room is not None and sum(flow.stores[store].stored for store in kept) > room:
            continue
        upkeep = sum(flow.stores[store].upkeep_cost for store in kept)
        wanted = [
            [path for path in paths if all(_is_usable(flow, arc, kept) for arc in path)]
            for demand, paths in zip(flow.demands, all_paths, strict=True)
            if demand.intermediate is None or demand.intermediate in kept
        ]
        choices = [
            range(len(store.partitionings)) if store.is_base or number in kept else [0]
            for number, store in enumerate(flow.stores)
        ]
        for partitionings in product(*choices):
            costs = [arc.costs[partitionings[arc.target]] for arc in flow.arcs]
            best = min(best, upkeep + _cheapest(wanted, costs, best - upkeep))
    return best


def _is_usable(flow: Flow, arc: int, kept: tuple[int, ...]) -> bool:
    target = flow.arcs[arc].target
    return flow.stores[target].is_base or target in kept


def _cheapest(wanted: list[list[tuple[int, ...]]], costs: list[float], limit: float) -> float:
    """Least cost of one path each, equal arcs counted once; branches that reach the limit are cut."""

    def descend(position: int, paid: frozenset[int], cost: float, limit: float) -> float:
        if cost >= limit:
            return limit
        if position == len(wanted):
            return cost
        for path in wanted[position]:
            added = sum(costs[arc] for arc in path if arc not in paid)
            limit = descend(position + 1, paid.union(path), cost + added, limit)
        return limit

    return descend(0, frozenset(), 0.0, limit)


def small_problem(seed: int) -> Problem:
    """Two or three queries over up to five relations, with uneven rows and all options in turn."""
    rng = random.Random(seed)
    while True:
        problem = _draw(rng)
        if count_combinations(build_flow(problem)) <= MAX_COMBINATIONS:
            return problem


def _draw(rng: random.Random) -> Problem:
    relations = "RSTUV"[: rng.randint(3, 5)]
    joins: list[Predicate] = [
        equality(f"{one}.{name}", f"{other}.{name}")
        for one, other in combinations(relations, 2)
        for name in rng.sample("ab", rng.randint(0, 2))
    ]
    queries = []
    for number in range(rng.randint(1, 3)):
        chosen = _connected_joins(joins, rng.randint(2, 4), rng)
        if chosen:
            queries.append(query_graph(f"q{number}", chosen, may_materialize=rng.random() < 0.8))
    statistics = PapersStatistics(
        {relation: float(rng.choice([10, 50, 100, 400])) for relation in relations},
        {join: rng.choice([0.002, 0.01, 0.05]) for join in joins},
        {relation: rng.choice([1, 2, 5]) for relation in relations},
    )
    model = UpkeepCost(statistics, rng.choice([0.0, 0.3])) if rng.random() < 0.5 else PapersCost(statistics)
    budget = rng.choice([None, None, sum(statistics.rows_by_relation.values()) + rng.choice([20, 100, 300])])
    ranks = tuple(rng.sample(relations, len(relations))) if rng.random() < 0.3 else None
    may_materialize, may_partition, may_nest = (rng.random() < chance for chance in (0.8, 0.7, 0.7))
    return Problem(tuple(queries), model, may_materialize, may_partition, budget, ranks, may_nest)


def _connected_joins(joins: list[Predicate], size: int, rng: random.Random) -> list[Predicate]:
    if not joins:
        return []
    chosen = [rng.choice(joins)]
    joined = {chosen[0].first.relation, chosen[0].second.relation}
    while len(joined) < size:
        reachable = [join for join in joins if join.touches(joined) and not join.is_within(joined)]
        if not reachable:
            break
        chosen.append(rng.choice(reachable))
        joined |= {chosen[-1].first.relation, chosen[-1].second.relation}
    extra = [join for join in joins if join.is_within(joined) and join not in chosen]
    return chosen + ([rng.choice(extra)] if extra and rng.random() < 0.4 else [])
