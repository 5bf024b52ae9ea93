"""A bound that costs no solver: steps of different starts are never the same, so each start pays at least its most
expensive demand, taken alone over its cheapest path, with the best partitionings and all intermediates for nothing.
"""

from __future__ import annotations

import math

from dovetail.optimizer.joint.solvers.flow import Demand, Flow


def bound_from_below(flow: Flow) -> float:
    least_by_arc = [min(arc.costs) for arc in flow.arcs]
    bound_by_start: dict[str, float] = {}
    for demand in flow.demands:
        if demand.query is not None:
            cost = _cheapest_path(demand, least_by_arc)
            bound_by_start[demand.start] = max(cost, bound_by_start.get(demand.start, 0.0))
    return math.fsum(bound_by_start.values())


def _cheapest_path(demand: Demand, cost_by_arc: list[float]) -> float:
    best = [math.inf] * demand.node_count
    best[0] = 0.0
    for step in demand.path_arcs:
        best[step.head] = min(best[step.head], best[step.tail] + cost_by_arc[step.arc])
    return best[-1]
