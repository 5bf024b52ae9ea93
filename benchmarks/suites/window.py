"""Suite `window`: one join with windows from 1 to 300 s, the same rows in every batch, as many results.

Attribute i has a range in proportion to window i, so that a longer window stores more rows but finds no
more partners: what grows is state alone. Only batches after the longest window has filled are compared,
the same batches for every window.
"""

from __future__ import annotations

from benchmarks.data.workloads import ATTRIBUTE_COUNT, Workload, interval_join
from benchmarks.measure import RunTime, median
from benchmarks.options import BenchError
from benchmarks.workbench import Case, Measured, Workbench

DEFAULT_ROWS = 6_000_000
QUICK_ROWS = 200_000
WINDOWS_S = (1, 10, 60, 300)
QUICK_WINDOWS_S = (1, 300)
RESULTS_PER_ROW = 0.1


def run(bench: Workbench) -> dict[str, object]:
    windows = QUICK_WINDOWS_S if bench.options.quick else WINDOWS_S
    seconds, seconds_per_batch = (500, 25) if bench.options.quick else (600, 10)
    rows_per_second = max(1, bench.options.rows_or(DEFAULT_ROWS, QUICK_ROWS) // (2 * seconds))
    key_ranges = _key_ranges(windows, rows_per_second)
    # A file per batch: opening many small files would be a constant cost that hides growth.
    workload = Workload(("a", "b"), seconds, rows_per_second, key_ranges, bench.options.seed, seconds_per_batch)
    files = bench.write(workload)
    cases = [
        bench.case(f"window of {window_s} s", files, {"q": interval_join(window_s, attribute)})
        for attribute, window_s in enumerate(windows)
    ]
    bench.warm_up(cases[0], 4 * seconds_per_batch, with_spark=False)
    full_ms_by_window: dict[int, list[float]] = {}
    figures_by_window: dict[str, dict[str, object]] = {}
    case_by_window = dict(zip(windows, cases, strict=True))
    # There and back: what runs later runs on warmer code, and no window shall profit from that.
    for window_s in (*windows, *reversed(windows)):
        case = case_by_window[window_s]
        measured = bench.time_dovetail(case, seconds_per_batch, bench.options.repeats or 1)
        full_ms = full_ms_by_window.setdefault(window_s, [])
        full_ms += _full_window_ms(measured.timing.best, seconds, seconds_per_batch, max(windows))
        bench.steps.note(f"  batch with a full window: {median(full_ms):.0f} ms, median of {len(full_ms)}")
        figures_by_window[str(window_s)] = _figures_of_window(case, measured, full_ms)
    shortest, longest = full_ms_by_window[min(windows)], full_ms_by_window[max(windows)]
    return {
        "rows": workload.total_rows,
        "rows_per_batch": 2 * rows_per_second * seconds_per_batch,
        "by_window": figures_by_window,
        "growth_300": round(median(longest) / median(shortest), 2),
        "growth_300_mean": round(sum(longest) / sum(shortest), 2),
        "results_equal": all(bool(figures["results_equal"]) for figures in figures_by_window.values()),
        "spread": {str(window_s): [min(values), max(values)] for window_s, values in full_ms_by_window.items()},
    }


def _key_ranges(windows: tuple[int, ...], rows_per_second: int) -> tuple[int, ...]:
    """Partners of a row: 2 * window * rows_per_second / range."""
    ranges = [max(1, round(2 * window_s * rows_per_second / RESULTS_PER_ROW)) for window_s in windows]
    return (*ranges, *ranges[:1] * (ATTRIBUTE_COUNT - len(ranges)))


def _figures_of_window(case: Case, measured: Measured, full_ms: list[float]) -> dict[str, object]:
    return {
        "batch_ms_p50": round(median(full_ms), 1),
        "batch_ms_mean": round(sum(full_ms) / len(full_ms), 1),
        "total_s": round(measured.seconds, 2),
        "results": case.results,
        "results_equal": measured.is_equal,
    }


def _full_window_ms(run: RunTime, seconds: int, seconds_per_batch: int, longest_window_s: int) -> list[float]:
    expected_batches = seconds // seconds_per_batch
    if len(run.batch_ms) != expected_batches:
        raise BenchError(f"{len(run.batch_ms)} batches were reported, not {expected_batches}")
    return list(run.batch_ms[-(-longest_window_s // seconds_per_batch) :])
