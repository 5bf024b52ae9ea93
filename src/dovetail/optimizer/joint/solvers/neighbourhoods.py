"""Large steps for problems that are too large as a whole: the exact program for some related queries at a time.

A neighbourhood is a query and those that share most steps with it; the first ones are single queries. When a round
over all of them gains nothing, they grow, until the solver gives up on most. Some take the solver far longer than the
gain is worth, so each run has a short time of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from dovetail.optimizer.joint.solvers.flow import Flow
from dovetail.optimizer.joint.solvers.ilp import reoptimize
from dovetail.optimizer.joint.solvers.ledger import Ledger

FIRST_SIZE = 1
SECONDS_PER_RUN = 0.3
GROWTH = 1.5
MINIMAL_GAIN = 1e-9


def search_neighbourhoods(
    ledger: Ledger,
    useful: Sequence[Sequence[int]],
    deadline: float,
    on_improvement: Callable[[float], None] | None = None,
) -> None:
    """Improve a complete ledger until neighbourhoods would be the whole problem, do not help, or `deadline`."""
    flow = ledger.flow
    demands_by_query: list[list[int]] = [[] for _ in flow.problem.queries]
    for number, demand in enumerate(flow.demands):
        if demand.query is not None:
            demands_by_query[demand.query].append(number)
    related = _related_queries(flow)
    size, last_size = float(FIRST_SIZE), 0
    while size < len(related):
        before, are_solved = ledger.cost, 0
        for query in range(len(related)):
            if time.perf_counter() >= deadline:
                return
            if last_size > len(related[query]):
                are_solved += 1
                continue
            chosen = [query, *related[query][: int(size) - 1]]
            demands = [number for each in chosen for number in demands_by_query[each]]
            cost = ledger.cost
            run_deadline = min(deadline, time.perf_counter() + SECONDS_PER_RUN)
            answer = reoptimize(ledger, demands, useful, run_deadline, is_rough=True)
            are_solved += answer.is_optimal
            if ledger.cost < cost and on_improvement:
                on_improvement(ledger.cost)
        is_better = ledger.cost < before * (1 - MINIMAL_GAIN)
        if not is_better and are_solved * 2 < len(related):
            return
        if not is_better:
            last_size = int(size)
            size = max(size + 1, size * GROWTH)


def _related_queries(flow: Flow) -> list[list[int]]:
    """Per query the others, those that may share most steps first; queries without a common store are left out."""
    steps: list[set[int]] = [set() for _ in flow.problem.queries]
    stores: list[set[int]] = [set() for _ in flow.problem.queries]
    for demand in flow.demands:
        if demand.query is not None:
            steps[demand.query].update(step.arc for step in demand.path_arcs)
            stores[demand.query].update(flow.arcs[step.arc].target for step in demand.path_arcs)

    def related(query: int) -> list[int]:
        others = [other for other, own in enumerate(stores) if other != query and own & stores[query]]
        return sorted(others, key=lambda o: (-len(steps[o] & steps[query]), -len(stores[o] & stores[query]), o))

    return [related(query) for query in range(len(steps))]
