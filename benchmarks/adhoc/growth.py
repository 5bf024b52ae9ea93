"""SC1 and SC2 over files that arrive at a steady rate; then a restart, and as many queries as can be registered."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.adhoc.check import wrong_queries
from benchmarks.adhoc.queries import TemplateQuery
from benchmarks.adhoc.scenario import Part, Scenario, Shape, repeating, request_figures
from benchmarks.adhoc.session import AdhocSession, Arrivals, Batch, batch_by_file
from benchmarks.data.workloads import STREAM_NAMES, StreamFiles
from benchmarks.measure import percentile
from benchmarks.workbench import Workbench

BATCHES_WITH_ALL = 2


def measure_growth(bench: Workbench, shape: Shape, files: StreamFiles, queries: Iterator[TemplateQuery]) -> Part:
    arrivals = Arrivals(files, bench.fresh_folder("arrivals"))
    checkpoint = bench.fresh_folder("adhoc")
    session = AdhocSession(bench.spark, checkpoint, arrivals)
    scenario = Scenario(session, queries, shape.per_second)
    for _ in range(shape.per_second):
        scenario.create()
    with session, repeating(lambda: _put(arrivals, shape.interval_s)):
        with bench.steps.step("growth: first batches"):
            session.start()
            session.await_batch(1)
        began = time.perf_counter()
        with bench.steps.step(f"growth: {shape.per_second} creates a second until {shape.grown} run"):
            grown = scenario.request(lambda: len(scenario.live) >= shape.grown, with_drops=False)
        grown_s = time.perf_counter() - began
        with bench.steps.step(f"{shape.grown} queries: {shape.per_second} creates and drops a second"):
            ends_at = time.monotonic() + shape.phase_s
            churned = scenario.request(lambda: time.monotonic() > ends_at, with_drops=True)
        scenario.settle()
    latencies = latencies_s(session, arrivals)
    figures = {
        **{f"grown_{name}": value for name, value in request_figures([*grown, *churned], session.batches).items()},
        "queries_grown": shape.grown,
        "rest_created": {"through": "REST", "created": len(scenario.live), "seconds": round(grown_s, 1)},
        "latency_p50_s": round(percentile(latencies, 0.5), 3),
        "latency_p99_s": round(percentile(latencies, 0.99), 3),
        "arriving_rows_per_s": round(files.workload.rows_per_second * len(STREAM_NAMES) / shape.interval_s),
        **_restart(bench, shape, scenario, AdhocSession(bench.spark, checkpoint, arrivals)),
    }
    batches = {**session.batches, **scenario.session.batches}
    with bench.steps.step(f"{len(scenario.asked)} queries: the right answers, by DuckDB"):
        wrong = wrong_queries(files, batches, scenario.asked, checkpoint, bench.options.cores)
    return Part(figures, len(scenario.asked), wrong)


def latencies_s(session: AdhocSession, arrivals: Arrivals) -> list[float]:
    """Of every file: from its arrival to the commit of the batch that answered it."""
    return [
        session.batches[batch].committed_at - arrived_at
        for batches in batch_by_file(session.batches, arrivals.files).values()
        for batch, arrived_at in zip(batches, arrivals.arrived_at, strict=False)
    ]


def _put(arrivals: Arrivals, interval_s: float) -> float:
    arrivals.put()
    return interval_s


def _restart(bench: Workbench, shape: Shape, scenario: Scenario, session: AdhocSession) -> dict[str, object]:
    """The queries go on in a new session; then more come, as fast as they are taken."""
    session.arrivals.put()
    with session:
        with bench.steps.step(f"restart with {shape.grown} queries"):
            began = time.perf_counter()
            session.start()
            session.await_next()
            restart_s = time.perf_counter() - began
        scenario.session = session
        for asked in scenario.live:
            asked.query = session.session.query(asked.query.name)
        with bench.steps.step(f"queries created until {shape.registered} are registered"):
            more = [scenario.create() for _ in range(shape.registered - len(scenario.live))]
        with bench.steps.step(f"{shape.registered} queries: {BATCHES_WITH_ALL} batches"):
            batches = [_batch_of_one_file(session) for _ in range(BATCHES_WITH_ALL)]
        running = [query for query in session.session.queries if query.status.state == "running"]
    return {
        "restart_s": round(restart_s, 2),
        "registered_2000": len(running),
        "registered_create_p99_ms": round(percentile([each.answer_ms for each in more], 0.99), 1),
        "registered_batch_s": [round(batch.committed_at - batch.began_at, 2) for batch in batches],
    }


def _batch_of_one_file(session: AdhocSession) -> Batch:
    number = session.newest + 1
    session.arrivals.put()
    return session.await_batch(number)
