"""The fast form that always works: partition each store once, then one start after the other takes the path that adds
least to what is paid already.

    q1 = R-S-T, q2 = S-T-U; S x T is large.  q1's S goes S,R,T: alone that is cheaper. Later q2's S must go S,T,U.
    Greedy does not look back and pays S->T besides S->R; local search does look back.
"""

from __future__ import annotations

from dovetail.optimizer.joint.solvers.flow import Flow
from dovetail.optimizer.joint.solvers.ledger import Ledger


def choose_greedily(flow: Flow) -> Ledger:
    ledger = Ledger(flow)
    for store, partitioning in enumerate(choose_partitionings(flow)):
        ledger.partition(store, partitioning)
    # A start without a choice pays its steps in any case; the others then find them paid.
    demands = [number for number, demand in enumerate(flow.demands) if demand.query is not None]
    for number in sorted(demands, key=lambda number: len(flow.demands[number].path_arcs)):
        ledger.route(number)
    return ledger


def choose_partitionings(flow: Flow) -> list[int]:
    """Per store the partitioning under which all steps that could ever probe it would cost least together."""
    sums = [[0.0] * len(store.partitionings) for store in flow.stores]
    for arc in flow.arcs:
        for partitioning, cost in enumerate(arc.costs):
            sums[arc.target][partitioning] += cost
    return [costs.index(min(costs)) for costs in sums]
