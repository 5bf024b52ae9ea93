"""The exact form: solve the program for a ledger, whole or for some queries at a time.

Queries that share neither a step nor a choice of partitioning nor an intermediate are solved apart. Partitionings that
are nowhere cheaper than another one are left out, so a store that all reach alike leaves no choice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dovetail.optimizer.joint.solvers.flow import Flow
from dovetail.optimizer.joint.solvers.ilp_model import IlpModel
from dovetail.optimizer.joint.solvers.ledger import Ledger

COLUMNS_PER_RUN = 350
LEGS_OF_SMALL = 40
"""Small components are solved together, since starting HiGHS costs more than they do; not larger ones, since it does
not see that they are independent and would branch on all of them at once.
"""
MAX_OF_SHARE = 3.0
MOST_FOR_ONE = 0.8


@dataclass(frozen=True)
class IlpRun:
    """Demands of queries that one program decides, and its size: paths' columns, without those of upkeep."""

    demands: tuple[int, ...]
    legs_of_largest: int
    columns: int


@dataclass(frozen=True)
class IlpAnswer:
    """What a run proved: no choice for its queries makes the ledger cheaper than `bound`."""

    bound: float
    is_optimal: bool
    variables: int


def useful_partitionings(flow: Flow) -> list[list[int]]:
    """Per store the partitionings of which none is at least as cheap for every step; of equal ones the first."""
    rows: list[list[tuple[float, ...]]] = [[] for _ in flow.stores]
    for arc in flow.arcs:
        rows[arc.target].append(arc.costs)
    useful = []
    for store, costs in zip(flow.stores, rows, strict=True):
        columns = [tuple(row[p] for row in costs) for p in range(len(store.partitionings))]
        numbers = range(len(columns))
        useful.append(
            [p for p in numbers if not any(_is_dominated(columns[p], p, columns[other], other) for other in numbers)]
        )
    return useful


def _is_dominated(costs: Sequence[float], number: int, others: Sequence[float], other: int) -> bool:
    if number == other or any(cost < rival for cost, rival in zip(costs, others, strict=True)):
        return False
    return other < number or costs != others


def use_useful_partitionings(ledger: Ledger, useful: Sequence[Sequence[int]]) -> None:
    """Replace each partitioning that is not useful by one that is nowhere dearer."""
    costs_by_store: dict[int, list[tuple[float, ...]]] = {}
    for arc in ledger.flow.arcs:
        costs_by_store.setdefault(arc.target, []).append(arc.costs)
    for store, choices in enumerate(useful):
        old = ledger.partitionings[store]
        if old not in choices:
            rows = costs_by_store.get(store, ())
            ledger.partition(store, next(p for p in choices if all(row[p] <= row[old] for row in rows)))


def find_components(flow: Flow, useful: Sequence[Sequence[int]]) -> list[list[int]]:
    """Demands of queries that have to be decided together; large ones first, since there is most to gain."""
    parent = list(range(len(flow.demands)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    has_budget = flow.problem.room_for_intermediates() is not None
    first_by_tie: dict[tuple[str, int], int] = {}
    for number, demand in enumerate(flow.demands):
        ties = [("arc", step.arc) for step in demand.path_arcs]
        targets = {flow.arcs[step.arc].target for step in demand.path_arcs}
        ties += [("store", each) for each in targets if len(useful[each]) > 1 or not flow.stores[each].is_base]
        if demand.intermediate is not None:
            ties.append(("store", demand.intermediate))
        if has_budget:
            ties.append(("budget", 0))
        for tie in ties:
            parent[root(number)] = root(first_by_tie.setdefault(tie, number))
    members: dict[int, list[int]] = {}
    for number, demand in enumerate(flow.demands):
        if demand.query is not None:
            members.setdefault(root(number), []).append(number)
    return sorted(members.values(), key=lambda each: (-len(each), each))


def plan_runs(flow: Flow, useful: Sequence[Sequence[int]]) -> list[IlpRun]:
    runs: list[IlpRun] = []
    for component in find_components(flow, useful):
        path_arcs = [step for number in component for step in flow.demands[number].path_arcs]
        run = IlpRun(
            tuple(component), len(path_arcs), sum(len(useful[flow.arcs[step.arc].target]) for step in path_arcs)
        )
        last = runs[-1] if runs else run
        if max(last.legs_of_largest, run.legs_of_largest) <= LEGS_OF_SMALL and runs and last.columns < COLUMNS_PER_RUN:
            runs[-1] = IlpRun(last.demands + run.demands, last.legs_of_largest, last.columns + run.columns)
        else:
            runs.append(run)
    return runs


def solve_ilp(
    ledger: Ledger,
    useful: Sequence[Sequence[int]],
    deadline: float,
    on_improvement: Callable[[float], None] | None = None,
    answer_by_run: dict[IlpRun, IlpAnswer] | None = None,
) -> IlpAnswer:
    """Improve a complete ledger until it is proven optimal, or until `deadline` (a time of `time.perf_counter`).

    `answer_by_run` is kept between calls for one problem: what is proven there is not done again, other bounds still
    hold.
    """
    answers = {} if answer_by_run is None else answer_by_run
    open_runs = [run for run in plan_runs(ledger.flow, useful) if run not in answers or not answers[run].is_optimal]
    columns_left = sum(run.columns for run in open_runs)
    for run in open_runs:
        now = time.perf_counter()
        known = answers.setdefault(run, IlpAnswer(0.0, is_optimal=False, variables=0))
        if now >= deadline:
            continue
        # A hard component may take more than its share, but not the time of all that come after it.
        most = 1.0 if run is open_runs[-1] else MOST_FOR_ONE
        share = min(most, MAX_OF_SHARE * run.columns / columns_left)
        columns_left -= run.columns
        run_deadline = now + share * (deadline - now)
        answer = reoptimize(ledger, run.demands, useful, run_deadline, on_improvement=on_improvement)
        answers[run] = replace(answer, bound=max(known.bound, answer.bound))
    bound = math.fsum(answer.bound for answer in answers.values())
    variables = sum(answer.variables for answer in answers.values())
    return IlpAnswer(min(bound, ledger.cost), all(answer.is_optimal for answer in answers.values()), variables)


def reoptimize(
    ledger: Ledger,
    demands: Sequence[int],
    useful: Sequence[Sequence[int]],
    deadline: float,
    *,
    is_rough: bool = False,
    on_improvement: Callable[[float], None] | None = None,
) -> IlpAnswer:
    """Choose the paths of these demands of queries anew, with all partitionings and intermediates they touch; the
    paths of the others stay. The ledger never gets worse. The answer's bound is what these demands add at least.
    """
    before = ledger.snapshot()
    for number in demands:
        ledger.remove(number)
    others_cost = ledger.cost
    model = _build_model(ledger, demands, useful)
    start = model.start_values(before)
    report = None if on_improvement is None else _shifted(on_improvement, others_cost)
    outcome = model.run(start, deadline - time.perf_counter(), is_rough=is_rough, report=report)
    partitionings = model.chosen_partitionings(outcome.values)
    opened = [store for store in partitionings if not model.is_given(store)]
    for store, partitioning in partitionings.items():
        ledger.partition(store, partitioning)
    ledger.follow(model.chosen_arcs(outcome.values), opened, demands)
    if ledger.cost > before.cost:
        ledger.restore(before)
    bound = outcome.cost if outcome.is_optimal else outcome.bound
    return IlpAnswer(bound, outcome.is_optimal, len(model.program.costs))


def _build_model(others: Ledger, demands: Sequence[int], useful: Sequence[Sequence[int]]) -> IlpModel:
    flow = others.flow
    model = IlpModel(useful, others)
    wanted = list(demands)
    targets: dict[int, None] = {}
    # Whoever may probe an intermediate brings its upkeep along, which may probe smaller ones.
    for number in wanted:
        for step in flow.demands[number].path_arcs:
            target = flow.arcs[step.arc].target
            if target not in targets:
                targets[target] = None
                if not model.is_given(target):
                    wanted.extend(flow.upkeep_demands[target])
    model.add_choices(sorted(targets))
    model.add_budget()
    for number in wanted:
        model.add_demand(number)
    return model


def _shifted(report: Callable[[float], None], cost: float) -> Callable[[float], None]:
    return lambda added: report(cost + added) if math.isfinite(added) else None
