"""Suite `ilp`: the joint optimizer alone, in the setting of CLASH Fig. 9; needs no Spark.

The paper names no number of tasks per store. With one task its savings and its number of variables come out (1717 for
100 queries over 10 relations); with more, separate plans may partition each store as each query likes it best, which a
shared store cannot. These cases are reported apart, as `partitioned_cases`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.data.random_queries import random_problem
from benchmarks.measure import Steps
from benchmarks.options import BenchOptions
from dovetail.optimizer.joint.problem import Problem
from dovetail.optimizer.joint.solvers.solve import Solution, solve

DEFAULT_BUDGET_S = 30.0
QUICK_BUDGET_S = 3.0
ALONE_BUDGET_S = 2.0
PARALLELISM = 4


@dataclass(frozen=True)
class IlpCase:
    relations: int
    queries: int
    size: int
    parallelism: int = 1

    @property
    def text(self) -> str:
        tasks = f", {self.parallelism} tasks a store" if self.parallelism > 1 else ""
        return f"{self.queries} queries of {self.size} over {self.relations} relations{tasks}"


CASES = (
    *(IlpCase(10, queries, 3) for queries in (10, 20, 40, 60, 80, 100)),
    *(IlpCase(100, queries, 3) for queries in (10, 20, 40, 50, 60, 80, 100)),
    *(IlpCase(100, queries, 4) for queries in (10, 30)),
    *(IlpCase(100, queries, 5) for queries in (10, 30)),
)
PARTITIONED_CASES = (
    IlpCase(10, 100, 3, PARALLELISM),
    IlpCase(100, 100, 3, PARALLELISM),
    IlpCase(100, 30, 4, PARALLELISM),
    IlpCase(100, 30, 5, PARALLELISM),
)
QUICK_CASES = (IlpCase(10, 100, 3), IlpCase(100, 100, 3), IlpCase(100, 10, 4), IlpCase(100, 10, 5))
QUICK_PARTITIONED_CASES = (IlpCase(100, 100, 3, PARALLELISM),)


def run(options: BenchOptions, steps: Steps) -> dict[str, object]:
    budget_s = options.time_limit_s or (QUICK_BUDGET_S if options.quick else DEFAULT_BUDGET_S)
    # What the first run loads and compiles belongs to no case.
    solve(random_problem(10, 5, 3, options.seed), budget_s)
    cases = QUICK_CASES if options.quick else CASES
    partitioned = QUICK_PARTITIONED_CASES if options.quick else PARTITIONED_CASES
    return {
        "budget_s": budget_s,
        "cases": [_run_case(case, options.seed, budget_s, steps) for case in cases],
        "partitioned_cases": [_run_case(case, options.seed, budget_s, steps) for case in partitioned],
    }


def _run_case(case: IlpCase, seed: int, budget_s: float, steps: Steps) -> dict[str, object]:
    problem = random_problem(case.relations, case.queries, case.size, seed, case.parallelism)
    with steps.step(case.text):
        solution = solve(problem, budget_s)
    solution.plan.check(problem)
    return _figures(case, solution, _cost_individual(problem))


def _cost_individual(problem: Problem) -> float:
    """Each query optimized alone, as if the others were not there."""
    alone = (replace(problem, queries=(query,)) for query in problem.queries)
    return sum(solve(each, ALONE_BUDGET_S).plan.cost for each in alone)


def _figures(case: IlpCase, solution: Solution, cost_individual: float) -> dict[str, object]:
    """`seconds_1pct` counts until the cost is proven to be within 1% (by the bound known at the end, the optimum itself
    where it is proven), None if it never is; `seconds_5pct_of_best` until it is near the best plan found at all.
    """
    cost = solution.plan.cost
    return {
        "relations": case.relations,
        "queries": case.queries,
        "size": case.size,
        "parallelism": case.parallelism,
        "saving": round(1 - cost / cost_individual, 4),
        "seconds_1pct": _rounded(solution.seconds_within(0.01, solution.bound)),
        "seconds_5pct_of_best": _rounded(solution.seconds_within(0.05, cost)),
        "seconds_optimal": _rounded(solution.seconds) if solution.is_optimal else None,
        "seconds": _rounded(solution.seconds),
        "gap": round(solution.gap, 5),
        "variables": solution.variables,
        "cost_shared": round(cost, 2),
        "cost_individual": round(cost_individual, 2),
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
