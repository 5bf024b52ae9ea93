"""SC2 over files that wait: quiet batches, batches while queries come and go, and quiet ones again."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.adhoc.check import wrong_queries
from benchmarks.adhoc.queries import TemplateQuery, mean_similarity
from benchmarks.adhoc.scenario import Part, Scenario, Shape, batch_seconds, repeating, request_figures, rows_per_s
from benchmarks.adhoc.session import AdhocSession, Arrivals, Batch
from benchmarks.data.workloads import StreamFiles
from benchmarks.workbench import Workbench

FILES_AHEAD = 3
SETTLING_BATCHES = 6
"""Until then the planner counts the data for the first time, and plans change."""


def measure_throughput(bench: Workbench, shape: Shape, files: StreamFiles, queries: Iterator[TemplateQuery]) -> Part:
    arrivals = Arrivals(files, bench.fresh_folder("arrivals"))
    checkpoint = bench.fresh_folder("adhoc")
    session = AdhocSession(bench.spark, checkpoint, arrivals, files_per_batch=1)
    scenario = Scenario(session, queries, shape.per_second)
    for _ in range(shape.churned):
        scenario.create()
    batches: dict[str, list[Batch]] = {}
    with session, repeating(lambda: _keep_ahead(session)):
        with bench.steps.step(f"{shape.churned} queries: first batches"):
            session.start()
            session.await_batch(SETTLING_BATCHES)
        for phase in ("before", "during", "after"):
            with bench.steps.step(f"{shape.churned} queries: throughput {phase}"):
                batches[phase] = _phase(scenario, shape.phase_s, with_requests=phase == "during")
            bench.steps.note(f"  {rows_per_s(batches[phase]):,.0f} rows/s in {len(batches[phase]) - 1} batches")
        scenario.settle()
    made = scenario.asked[shape.churned :]
    rates = {phase: round(rows_per_s(found)) for phase, found in batches.items()}
    figures = {
        "queries_running": shape.churned,
        "requests_per_s": shape.per_second,
        "similarity": round(mean_similarity(each.template for each in scenario.asked), 3),
        **request_figures(made, session.batches),
        "sustained_rows_per_s": rates,
        "throughput_ratio": round(2 * rates["during"] / (rates["before"] + rates["after"]), 3),
        "batch_s": {phase: batch_seconds(found) for phase, found in batches.items()},
    }
    with bench.steps.step(f"{len(scenario.asked)} queries: the right answers, by DuckDB"):
        wrong = wrong_queries(files, session.batches, scenario.asked, checkpoint, bench.options.cores)
    return Part(figures, len(scenario.asked), wrong)


def _phase(scenario: Scenario, seconds: float, *, with_requests: bool) -> list[Batch]:
    """The batches that were committed meanwhile, and the one before."""
    session = scenario.session
    first = session.newest
    ends_at = time.monotonic() + seconds
    if with_requests:
        scenario.request(lambda: time.monotonic() > ends_at, with_drops=True)
    else:
        time.sleep(seconds)
    last = max(session.newest, first + 2)
    session.await_batch(last)
    return [session.batches[number] for number in range(first, last + 1)]


def _keep_ahead(session: AdhocSession) -> float:
    """So many files that no batch waits for one."""
    while session.arrivals.count < session.newest + 1 + FILES_AHEAD:
        session.arrivals.put()
    return 0.01
