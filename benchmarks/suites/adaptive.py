"""Suite `adaptive`: a chain of four whose data change at second 15, a static against an adaptive plan (CLASH Fig. 8).

Event time drives everything: a batch is a second of it, and runs as soon as the one before has ended. The static plan
is made from figures that are true until the change and that nothing observed overrides; the adaptive one follows what
its batches show. Times are the median of the batches from second 22 on, when a window has passed since the change;
rows are all partial and whole results that the hops of one batch found.
"""

from __future__ import annotations

from benchmarks.data.chains import (
    COLUMNS_BY_STREAM,
    PARTNERS,
    RATE_RATIO,
    ChainData,
    chain_sql,
    figures_before,
    write_chain,
)
from benchmarks.measure import median
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.planners import PLANNERS
from benchmarks.replay import Replay, StreamFolder, duckdb_views, replay
from benchmarks.workbench import Workbench

DEFAULT_ROWS = 4_800_000
QUICK_ROWS = 60_000
QUICK_CHANGE_S, QUICK_SECONDS = 3, 12
SETTLED_AFTER_S = 7
WARM_UP_SECONDS = 3
MODES = ("static", "adaptive")


def run(bench: Workbench) -> dict[str, object]:
    rows = bench.options.rows_or(DEFAULT_ROWS, QUICK_ROWS)
    _warm_up(bench)
    a_figures = _compare(bench, "8a", _data(bench, rows, is_b=False))
    b_figures = _compare(bench, "8b", _data(bench, rows, is_b=True))
    return {
        **a_figures,
        "b": b_figures,
        "results_equal": bool(a_figures["results_equal"]) and bool(b_figures["results_equal"]),
    }


def _data(bench: Workbench, rows: int, *, is_b: bool) -> ChainData:
    quick = bench.options.quick
    shape = {"change_s": QUICK_CHANGE_S, "seconds": QUICK_SECONDS} if quick else {}
    per_second = rows // ChainData(PARTNERS, is_b, **shape).seconds
    rate = per_second // (RATE_RATIO + 3) if is_b else per_second // 4 // PARTNERS * PARTNERS
    return ChainData(max(PARTNERS, rate), is_b, **shape, seed=bench.options.seed)


def _warm_up(bench: Workbench) -> None:
    with bench.steps.step("warming up"):
        data = ChainData(PARTNERS, is_b=False, seconds=WARM_UP_SECONDS)
        _replay(bench, write_chain(data, bench.fresh_folder("warm-up")), data, "adaptive")


def _compare(bench: Workbench, name: str, data: ChainData) -> dict[str, object]:
    with bench.steps.step(f"{name}: writing {data.total_rows:,} rows"):
        streams = write_chain(data, bench.fresh_folder("chain"))
    views = DuckDbViews(duckdb_views(streams), bench.options.cores)
    with bench.steps.step(f"{name}: the right answer, by DuckDB"), views as duckdb:
        expected = duckdb.answer(chain_sql())
    best: dict[str, Replay] = {}
    is_equal = True
    for _ in range(bench.options.repeats_or(2)):
        for mode in MODES:
            with bench.steps.step(f"{name}: {mode}"):
                newest = _replay(bench, streams, data, mode)
            seconds = settled_s(newest, data)
            bench.steps.note(f"  {seconds:.3f} s a batch after the change, {newest.seconds:.1f} s in all")
            if newest.answer_by_name["q"] != expected:
                is_equal = False
                bench.steps.note(f"[red]{name}, {mode}: {newest.answer_by_name['q']}, not {expected}[/red]")
            if mode not in best or seconds < settled_s(best[mode], data):
                best[mode] = newest
    return _figures(data, best, expected.row_count) | {"results_equal": is_equal}


def _replay(bench: Workbench, streams: list[StreamFolder], data: ChainData, mode: str) -> Replay:
    bench.collect_garbage()
    options = dict(PLANNERS[mode])
    if mode == "static":
        options["statistics"] = figures_before(data)
    return replay(bench.spark, streams, {"q": chain_sql()}, bench.fresh_folder(mode), options)


def settled_s(run: Replay, data: ChainData) -> float:
    """A batch's time once the data have been what they are for longer than the window."""
    return median(run.batch_ms[data.change_s + SETTLED_AFTER_S :]) / 1000


def _figures(data: ChainData, run_by_mode: dict[str, Replay], results: int) -> dict[str, object]:
    seconds_by_mode = {mode: settled_s(run, data) for mode, run in run_by_mode.items()}
    settled = slice(data.change_s + SETTLED_AFTER_S, None)
    return {
        **{f"{mode}_s": round(seconds, 3) for mode, seconds in seconds_by_mode.items()},
        **{f"{mode}_peak_rows": max(run.matched_rows) for mode, run in run_by_mode.items()},
        **{f"{mode}_settled_rows": median(run.matched_rows[settled]) for mode, run in run_by_mode.items()},
        **{f"{mode}_total_s": round(run.seconds, 2) for mode, run in run_by_mode.items()},
        "ratio": round(seconds_by_mode["static"] / seconds_by_mode["adaptive"], 2),
        "statistics_share": round(run_by_mode["adaptive"].statistics_share, 4),
        "rows_per_second": {stream: data.rate(stream) for stream in COLUMNS_BY_STREAM},
        "change_s": data.change_s,
        "results": results,
        "series": {
            mode: {"batch_ms": [round(ms) for ms in run.batch_ms], "matched_rows": list(run.matched_rows)}
            for mode, run in run_by_mode.items()
        },
    }
