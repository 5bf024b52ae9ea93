"""Suite `hostile`: what does it take to take the others down? Nothing should.

Hostile queries, acts, rows and files in a session on Spark beside ten good queries, then hostile requests and queries
through a service of its own process, then every scalar function with generated arguments. What was tried, and how each
ended, is among the figures.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.hostile.acts import ACTS, run_acts
from benchmarks.hostile.arena import Arena, BatchTime
from benchmarks.hostile.calls import argument_sets, lost_calls
from benchmarks.hostile.corpus import QUERIES
from benchmarks.hostile.corpus.files import FILES
from benchmarks.hostile.corpus.requests import REQUESTS
from benchmarks.hostile.file_waves import run_files
from benchmarks.hostile.query_waves import QueryWaves
from benchmarks.hostile.records import MISSED, Outcome, Tried
from benchmarks.hostile.request_waves import RequestWaves
from benchmarks.hostile.served import Served
from benchmarks.measure import median
from benchmarks.workbench import Workbench
from dovetail.frontend.bind.functions import FUNCTIONS

ROWS_A_WAVE, QUIET_WAVES, PER_WAVE = 2_000, 10, 12
EVERY, QUICK_EVERY = 1, 25
"""Of the queries on Spark every so many are tried; through REST a quarter as many."""
ARGUMENT_SETS, QUICK_ARGUMENT_SETS = 100, 4


def run(bench: Workbench) -> dict[str, object]:
    every = QUICK_EVERY if bench.options.quick else EVERY
    say = bench.steps.note
    on_spark = _on_spark(bench, every)
    through_rest = _through_rest(bench, every)
    functions = _functions(bench)
    tried = [*on_spark.pop("all"), *through_rest.pop("all")]  # type: ignore[misc]
    for one in tried:
        if one.outcome not in _FINE:
            say(f"[red]{one.mechanism}: {one.to_json()}[/red]")
    return {
        **figures_of(tried),
        "batches_lost": on_spark["batches_lost"] + through_rest["batches_lost"],  # type: ignore[operator]
        "neighbours_wrong": len(on_spark["wrong"]) + len(through_rest["wrong"]),  # type: ignore[arg-type]
        "hangs": on_spark["hangs"] + through_rest["hangs"],  # type: ignore[operator]
        "http_5xx": through_rest["http_5xx"],
        "slowest_batch_over_usual": on_spark["slowest_batch_over_usual"],
        "functions": functions,
        "on_spark": on_spark,
        "through_rest": through_rest,
        "what": [one.to_json() for one in tried],
    }


_FINE = frozenset({Outcome.REFUSED, Outcome.STOPPED, Outcome.ANSWERED, Outcome.TOOK_NO_PART, Outcome.HELD})


def figures_of(tried: Sequence[Tried]) -> dict[str, object]:
    """Counts of what was tried; a text that was tried in two ways counts once."""
    distinct = {(one.mechanism, one.what): one for one in tried}
    by_mechanism = Counter(one.mechanism for one in distinct.values())
    return {
        "tried": len(distinct),
        "tried_by_channel": dict(Counter(one.channel for one in tried)),
        "mechanisms": {"count": len(by_mechanism), "tried": dict(by_mechanism)},
        "outcomes": dict(Counter(str(one.outcome) for one in tried)),
        "culprits_missed": sum(one.outcome in MISSED for one in tried),
    }


SHOWN_SLOWEST = 10


def slowest_over_usual(batches: Sequence[BatchTime], quiet_until: int, rows: int) -> dict[str, object]:
    """The usual batch is the median of those with all rows of a wave and nothing hostile; the first ones warm up."""
    usual = [batch.ms for batch in batches if 2 < batch.wave <= quiet_until and batch.rows >= rows]
    hostile = [batch for batch in batches if batch.wave > quiet_until]
    if not usual or not hostile:
        return {"usual_batch_ms": None, "slowest_batch_ms": None, "slowest_batch_over_usual": None}
    slowest = sorted(hostile, key=lambda batch: -batch.ms)
    return {
        "usual_batch_ms": round(median(usual), 1),
        "slowest_batch_ms": round(slowest[0].ms, 1),
        "slowest_batch_over_usual": round(slowest[0].ms / median(usual), 2),
        "slowest_batches": [{"wave": batch.wave, "ms": round(batch.ms, 1)} for batch in slowest[:SHOWN_SLOWEST]],
        "batches": len(hostile),
    }


def _on_spark(bench: Workbench, every: int) -> dict[str, object]:
    arena = Arena(bench.spark, bench.fresh_folder("hostile"), ROWS_A_WAVE)
    say = bench.steps.note
    try:
        with bench.steps.step(f"{QUIET_WAVES} quiet waves"):
            for _ in range(QUIET_WAVES):
                arena.run_wave()
        quiet_until = arena.wave
        with bench.steps.step("queries"):
            tried = QueryWaves(arena, PER_WAVE, say).run(QUERIES[::every])
        with bench.steps.step("acts"):
            tried += run_acts(arena, ACTS[:: max(1, every // 3)], say)
        with bench.steps.step("rows and files"):
            tried += run_files(arena, FILES[:: max(1, every // 5)], 6, say)
        with bench.steps.step("the good answers, by Spark in batch"):
            wrong = arena.wrong_neighbours()
    finally:
        arena.close()
    return {
        "all": tried,
        "batches_lost": arena.batches_lost,
        "hangs": arena.hangs,
        "wrong": wrong,
        **slowest_over_usual(arena.batches, quiet_until, 3 * ROWS_A_WAVE),
    }


def _through_rest(bench: Workbench, every: int) -> dict[str, object]:
    folder = bench.fresh_folder("served")
    folder.mkdir(parents=True)
    with bench.steps.step("requests"), Served(folder, ROWS_A_WAVE // 2) as served:
        waves = RequestWaves(served, bench.steps.note)
        served.run_wave()
        waves.run_requests(REQUESTS[:: max(1, every // 3)])
        waves.run_queries(QUERIES[:: 4 * every], PER_WAVE)
        wrong = served.wrong_neighbours(bench.spark)
    return {
        "all": waves.tried,
        "batches_lost": waves.batches_lost,
        "hangs": waves.hangs,
        "http_5xx": waves.http_5xx,
        "wrong": wrong,
    }


def _functions(bench: Workbench) -> dict[str, object]:
    sets = QUICK_ARGUMENT_SETS if bench.options.quick else ARGUMENT_SETS
    lost: list[str] = []
    with bench.steps.step(f"{len(FUNCTIONS)} functions, {sets} argument sets each"):
        for function in sorted(FUNCTIONS):
            with tempfile.TemporaryDirectory(prefix="dovetail-calls-") as folder:
                lost += lost_calls(Path(folder), argument_sets(function, sets))
    for call in lost:
        bench.steps.note(f"[red]lost by {call}[/red]")
    return {"functions": len(FUNCTIONS), "tried": len(FUNCTIONS) * sets, "batches_lost": len(lost)}
