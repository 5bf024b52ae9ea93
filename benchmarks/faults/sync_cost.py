"""What it costs that committed batches outlive a loss of power and that damage is found.

Two variants of one session run in turn, pair after pair, in one Spark application: as it is (`durability="power"`, with
checksums), and with `durability="process"` and no checksums of data files. What counts is the median of the pairs'
ratios, of the median batch for `smallest` and of the whole run for `single`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.compare.cases import CompareCase
from benchmarks.data.workloads import Workload, interval_join
from benchmarks.faults.unchecked import FLAG, check_again, leave_out_checksums
from benchmarks.measure import median
from benchmarks.peers.dovetail_peer import DovetailRun
from benchmarks.suites import single, smallest
from benchmarks.workbench import Workbench

SMALLEST_BATCHES, QUICK_SMALLEST_BATCHES = 16, 10
SMALLEST_PAIRS, SINGLE_PAIRS = 9, 9
WARM_BATCHES = 4
SAFE, BARE = "power", "process"


@dataclass(frozen=True)
class CostCase:
    case: CompareCase
    pairs: int
    seconds_of: Callable[[DovetailRun], float]


def cost_cases(*, quick: bool) -> tuple[CostCase, ...]:
    rate = smallest.ROWS_PER_SECOND
    seconds = WARM_BATCHES + (QUICK_SMALLEST_BATCHES if quick else SMALLEST_BATCHES)
    small = Workload(("a", "b"), seconds, rate, (2 * rate,) * 6)
    rows = single.QUICK_ROWS if quick else single.DEFAULT_ROWS // 2
    single_rate = rows // (2 * single.SECONDS)
    large = Workload(("a", "b"), single.SECONDS, single_rate, (2 * single.WINDOW_S * single_rate,) * 6)
    return (
        CostCase(
            CompareCase("smallest", small, {"q": interval_join(1)}, 1),
            2 if quick else SMALLEST_PAIRS,
            lambda run: median(run.time.batch_ms[WARM_BATCHES:]) / 1e3,
        ),
        CostCase(
            CompareCase("single", large, {"q": interval_join(single.WINDOW_S)}, single.BATCH_SIZES_S[1]),
            2 if quick else SINGLE_PAIRS,
            lambda run: run.time.seconds,
        ),
    )


def sync_cost(bench: Workbench, flag: Path) -> dict[str, Any]:
    """By case: the ratio of pairs, their spread, and the seconds of both."""
    found = {}
    for cost in cost_cases(quick=bench.options.quick):
        files = bench.write(cost.case.workload)
        case = bench.case(cost.case.name, files, cost.case.query_sql_by_name)
        is_equal = True

        def run(durability: str, cost: CostCase = cost, files: Any = files) -> DovetailRun:
            with _without_checksums(flag, durability == BARE):
                return bench.run_dovetail(
                    files,
                    cost.case.query_sql_by_name,
                    cost.case.seconds_per_batch,
                    read_answers=True,
                    durability=durability,
                )

        with bench.steps.step(f"{case.name}: warming up"):
            run(SAFE), run(BARE)
        pairs: list[dict[str, float]] = []
        with bench.steps.step(f"{case.name}: {cost.pairs} pairs, synced and with checksums; neither"):
            for number in range(cost.pairs):
                pair = {}
                for durability in (SAFE, BARE) if number % 2 else (BARE, SAFE):
                    ran = run(durability)
                    is_equal &= bench.is_equal("Dovetail", case, ran.answer_by_name)
                    pair[durability] = cost.seconds_of(ran)
                pairs.append(pair)
        ratios = sorted(round(pair[SAFE] / pair[BARE], 3) for pair in pairs)
        bench.steps.note(f"  {case.name}: {ratios}")
        found[case.name] = {
            "ratio": round(median(ratios), 3),
            "ratios": ratios,
            "power_s": round(median([pair[SAFE] for pair in pairs]), 4),
            "process_s": round(median([pair[BARE] for pair in pairs]), 4),
            "answers_equal": is_equal,
        }
    return found


@contextmanager
def _without_checksums(flag: Path, is_without: bool) -> Iterator[None]:
    """In the driver and its workers, which look for the file."""
    os.environ[FLAG] = str(flag)
    leave_out_checksums()
    if is_without:
        flag.touch()
    try:
        yield
    finally:
        flag.unlink(missing_ok=True)
        check_again()
