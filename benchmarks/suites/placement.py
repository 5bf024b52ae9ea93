"""Suite `placement`: the optimizer that places key groups alone, in the setting of SASPAR's Fig. 8 and 12a; no Spark.

A case `8q_16p_128g` is 8 queries, 16 partitions, 128 key groups. Accuracy is the best bound or optimum known over the
cost found. The exact program is also run alone on small cases, as in Fig. 8a. For Fig. 12a each heuristic is taken away
in turn, and each that places is also tried alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from benchmarks.measure import Steps
from benchmarks.options import BenchOptions
from benchmarks.partition.random_placements import random_placement_problem
from benchmarks.placement_bound import prove
from dovetail.optimizer.placement.cost import cost
from dovetail.optimizer.placement.problem import PlacementProblem
from dovetail.optimizer.placement.settings import HEURISTICS, Heuristic, Settings
from dovetail.optimizer.placement.solve import solve_placement
from dovetail.optimizer.placement.solvers.hypergraph import build_hypergraph
from dovetail.optimizer.placement.solvers.mip import MipAnswer, column_count, solve_mip

BUDGET_S = 4.0
"""The paper's."""
QUICK_BUDGET_S = 2.0
NEAR = 0.05
EXACT_LIMIT_S = 8.0
QUICK_EXACT_LIMIT_S = 2.0
EXACT_COLUMNS = 12_000
EXACT_GAP = 1e-4
SHARE_BUDGET_S = 60.0
PLACING: tuple[Heuristic, ...] = ("merged groups", "merged partitions", "pair tree", "hybrid groups")
"""The heuristics that place; the others say when to end, and what to place apart."""


@dataclass(frozen=True)
class PlacementCase:
    queries: int
    partitions: int
    groups: int

    @property
    def name(self) -> str:
        return f"{self.queries}q_{self.partitions}p_{self.groups}g"

    def problem(self, seed: int) -> PlacementProblem:
        return random_placement_problem(self.queries, self.partitions, self.groups, seed)


FIGURE_CASE = PlacementCase(8, 16, 128)
CASES = (
    *(PlacementCase(1, partitions, 16) for partitions in (4, 8)),
    *(PlacementCase(2, partitions, groups) for partitions, groups in ((4, 16), (4, 32), (8, 32))),
    *(PlacementCase(4, partitions, 64) for partitions in (4, 8, 16)),
    *(PlacementCase(8, partitions, 64) for partitions in (8, 16)),
    FIGURE_CASE,
    PlacementCase(8, 32, 128),
    PlacementCase(8, 32, 256),
    PlacementCase(16, 16, 64),
    PlacementCase(16, 32, 128),
)
QUICK_CASES = (PlacementCase(1, 4, 16), PlacementCase(2, 4, 16), PlacementCase(4, 8, 64), FIGURE_CASE)
SHARE_CASES = (FIGURE_CASE, PlacementCase(16, 16, 64))
QUICK_SHARE_CASES = (PlacementCase(4, 8, 64),)


def run(options: BenchOptions, steps: Steps) -> dict[str, object]:
    budget_s = options.time_limit_s or (QUICK_BUDGET_S if options.quick else BUDGET_S)
    exact_limit_s = QUICK_EXACT_LIMIT_S if options.quick else EXACT_LIMIT_S
    settings = Settings(time_budget_s=budget_s, seed=options.seed)
    # What the first run loads and compiles belongs to no case.
    solve_placement(PlacementCase(2, 2, 4).problem(options.seed), settings)
    cases = {}
    for case in QUICK_CASES if options.quick else CASES:
        with steps.step(case.name):
            cases[case.name] = _run_case(case.problem(options.seed), settings, exact_limit_s)
    shares = {}
    for case in QUICK_SHARE_CASES if options.quick else SHARE_CASES:
        with steps.step(f"{case.name}, without and with each heuristic only"):
            shares[case.name] = _run_shares(case.problem(options.seed), settings)
    of_figure = cases[FIGURE_CASE.name]
    return {
        "budget_s": budget_s,
        "cases": cases,
        "shares": shares,
        f"seconds_{FIGURE_CASE.name}": of_figure["seconds_near"],
        f"within_{FIGURE_CASE.name}": round(1 / float(str(of_figure["accuracy"])) - 1, 4),
    }


def _run_case(problem: PlacementProblem, settings: Settings, exact_limit_s: float) -> dict[str, object]:
    """`seconds_near`: until a placement within 5% of the bound or optimum was at hand, None if never. `seconds` is all
    that was spent; proving is no part of either. `exact_s`: of the exact program alone, None if it did not end or was
    too large to be tried.
    """
    solution = solve_placement(problem, settings)
    bound = prove(problem, solution)
    exact_s, exact = _run_exact(problem, exact_limit_s)
    if exact is not None:
        bound = max(bound, min(exact.bound, solution.cost.seconds))
    even = cost(problem, problem.even())
    return {
        "seconds": round(solution.seconds, 3),
        "seconds_near": _rounded(solution.seconds_within(NEAR, bound)),
        "cost": solution.cost.seconds,
        "cost_even": even.seconds,
        "bound_or_optimum": bound,
        "accuracy": round(bound / solution.cost.seconds, 4),
        "imbalance": round(solution.cost.imbalance, 3),
        "shipped_over_unshared": round(solution.cost.shipped_rows / solution.cost.unshared_rows, 3),
        "shipped_over_unshared_even": round(even.shipped_rows / even.unshared_rows, 3),
        "exact_s": exact_s,
        "heuristics": sorted(solution.heuristics_used),
    }


def _run_exact(problem: PlacementProblem, limit_s: float) -> tuple[float | None, MipAnswer | None]:
    """From the even placement, so that nothing else helps it."""
    nodes = build_hypergraph(problem)
    if column_count(nodes.graph) > EXACT_COLUMNS:
        return None, None
    started_at = time.perf_counter()
    answer = solve_mip(nodes.graph, nodes.parts(problem.even()), limit_s, EXACT_GAP)
    seconds = time.perf_counter() - started_at
    return _rounded(seconds) if answer.is_optimal else None, answer


def _run_shares(problem: PlacementProblem, settings: Settings) -> dict[str, object]:
    """Time and cost of one round with all heuristics, `without` each and with each `only`; the cost is over that with
    all. The cases are too large for the exact program, so nothing but the heuristics ends a round, no clock.
    """
    one_round = replace(settings, rounds=1, time_budget_s=SHARE_BUDGET_S)
    with_all = solve_placement(problem, one_round)

    def share(heuristics: frozenset[Heuristic]) -> dict[str, float]:
        solution = solve_placement(problem, replace(one_round, heuristics=heuristics | {"time budget"}))
        return {
            "seconds": round(solution.seconds, 3),
            "cost_over_all": round(solution.cost.seconds / with_all.cost.seconds, 4),
        }

    everything = frozenset(HEURISTICS)
    return {
        "all": {"seconds": round(with_all.seconds, 3), "cost_over_all": 1.0},
        "none": share(frozenset()),
        "without": {each: share(everything - {each}) for each in HEURISTICS if each != "time budget"},
        "only": {each: share(frozenset({each})) for each in PLACING},
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
