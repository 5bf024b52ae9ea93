"""One picture a suite, beside its JSON: `dovetail bench SUITE --json FILE` draws it, and so does the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.elastic.plot import write_plot as _elastic
from benchmarks.report.draw import bars, dots, drawing, lines, plain_ticks
from benchmarks.report.figure_row import Figures
from benchmarks.steady.plot import plot_steady as _steady


def write_plot(figures: Figures, path: Path) -> bool:
    """Whether there is something to draw: figures that were read back from a table lack what some pictures show."""
    suite = str(figures["suite"])
    if suite == "elastic" and "series" not in figures:
        return False
    PLOT_BY_SUITE[suite](figures, path)
    return True


def _single(figures: Figures, path: Path) -> None:
    by_store = figures["spark_rows_per_s_by_state_store"]
    rate_by_system = {
        "Dovetail": figures["dovetail_rows_per_s"],
        **{f"Spark,\n{store} store": rate for store, rate in by_store.items()},
        "DuckDB batch": figures["duckdb_rows_per_s"],
    }
    with drawing(path) as (axes,):
        axes.set_title("one join of two streams")
        bars(axes, list(rate_by_system), {"rows": list(rate_by_system.values())}, unit="input rows a second")


def _queries(figures: Figures, path: Path) -> None:
    by_count = {int(count): case for count, case in figures["by_queries"].items()}
    with drawing(path) as (axes,):
        axes.set_title(f"{figures['rows']:,} rows, all queries at once")
        series = {
            "Dovetail": {count: case["dovetail_s"] for count, case in by_count.items()},
            "Spark": {count: case["spark_s"] for count, case in by_count.items()},
        }
        lines(axes, series, unit="seconds", over="queries")
        axes.set_yscale("log")
        plain_ticks(axes, list(by_count))


def _window(figures: Figures, path: Path) -> None:
    by_window = {int(window): case["batch_ms_p50"] for window, case in figures["by_window"].items()}
    with drawing(path) as (axes,):
        axes.set_title(f"{figures['rows_per_batch']:,} rows a batch, full windows")
        lines(axes, {"Dovetail": by_window}, unit="ms a batch, median", over="window in seconds")
        axes.set_ylim(bottom=0)
        plain_ticks(axes, list(by_window))


def _multiway(figures: Figures, path: Path) -> None:
    cases = figures["by_relations"]
    with drawing(path) as (axes,):
        axes.set_title(f"chains of joins, {figures['rows_per_stream']:,} rows a stream")
        systems = {"Dovetail": "dovetail_s", "Spark": "spark_s", "DuckDB batch": "duckdb_s"}
        values = {name: [case[key] for case in cases.values()] for name, key in systems.items()}
        bars(axes, [f"{count} streams" for count in cases], values, unit="seconds")


def _smallest(figures: Figures, path: Path) -> None:
    with drawing(path) as (axes,):
        axes.set_title(f"batches of {figures['rows_per_batch']} rows")
        ms_by_name = {
            "Dovetail, median": figures["batch_ms_p50"],
            "Dovetail, 90%": figures["batch_ms_p90"],
            "Spark, median": figures["spark_batch_ms_p50"],
        }
        bars(axes, list(ms_by_name), {"ms": list(ms_by_name.values())}, unit="ms a batch")


def _ilp(figures: Figures, path: Path) -> None:
    by_kind: dict[str, list[Figures]] = {}
    for case in figures["cases"]:
        by_kind.setdefault(f"{case['size']}-way over {case['relations']}", []).append(case)
    with drawing(path, panels=2) as (saving, seconds):
        series = {kind: {case["queries"]: 100 * case["saving"] for case in cases} for kind, cases in by_kind.items()}
        lines(saving, series, unit="cost saved, %", over="queries")
        saving.set_title("against separately optimized queries")
        series = {kind: {case["queries"]: case["seconds_optimal"] for case in cases} for kind, cases in by_kind.items()}
        lines(seconds, series, unit="seconds", over="queries")
        seconds.set_yscale("log")
        seconds.set_title("until the optimum is proven")


def _adaptive(figures: Figures, path: Path) -> None:
    cases = {"Fig. 8a": figures, "Fig. 8b": figures["b"]}
    with drawing(path, panels=2) as (seconds, rows):
        for axes, key, unit in ((seconds, "s", "seconds a batch"), (rows, "settled_rows", "partial results a batch")):
            modes = {"static plan": "static", "adaptive plan": "adaptive"}
            values = {name: [case[f"{mode}_{key}"] for case in cases.values()] for name, mode in modes.items()}
            bars(axes, list(cases), values, unit=unit)
        seconds.set_title("after the data changed")


def _tpch_multi(figures: Figures, path: Path) -> None:
    cases = {"five queries": figures["five"], "ten queries": figures["ten"]}
    with drawing(path, panels=2) as (seconds, ratios):
        modes = {"one by one": "independent_s", "shared": "shared_s", "planned together": "joint_s", "Spark": "spark_s"}
        values = {name: [case.get(key) for case in cases.values()] for name, key in modes.items()}
        bars(seconds, list(cases), values, unit="seconds")
        keys = {"time": "speedup", "bytes of state": "bytes_ratio", "rows stored": "rows_ratio"}
        values = {name: [case[key] for case in cases.values()] for name, key in keys.items()}
        bars(ratios, list(cases), values, unit="times")
        ratios.set_title("one by one over planned together")


def _materialize(figures: Figures, path: Path) -> None:
    cases = figures["cases"]
    trees = {"flat": "flat", "left-deep": "left_deep", "optimized": "optimized"}
    with drawing(path, panels=3) as panels:
        for axes, key in zip(panels, ("rows_shipped", "rows_stored", "seconds"), strict=True):
            values = {name: [case[tree][key] for case in cases.values()] for name, tree in trees.items()}
            dots(axes, list(cases), values, unit=key.replace("_", " "))
            axes.set_yscale("log")


def _adhoc(figures: Figures, path: Path) -> None:
    rates = figures["sustained_rows_per_s"]
    with drawing(path, panels=2) as (throughput, answered):
        bars(throughput, list(rates), {"rows": list(rates.values())}, unit="input rows a second")
        throughput.set_title(f"{figures['queries_running']} queries, {figures['requests_per_s']} changes a second")
        ms = {share: [figures[f"{run}create_{share}_ms"] for run in ("", "grown_")] for share in ("p50", "p99")}
        groups = [f"{figures['queries_running']} queries", f"growing to {figures['queries_grown']}"]
        bars(answered, groups, {"median": ms["p50"], "99%": ms["p99"]}, unit="ms until a create is answered")


def _skew(figures: Figures, path: Path) -> None:
    names = {"hash": "hash", "contrand": "ContRand", "split": "hot keys split"}
    with drawing(path) as (axes,):
        series = {
            name: {float(exponent): by_routing[key] for exponent, by_routing in figures["imbalance"].items()}
            for key, name in names.items()
        }
        lines(axes, series, unit="slowest unit over mean", over="Zipf exponent of the keys")
        axes.set_title(f"{figures['units']} units")


def _theta(figures: Figures, path: Path) -> None:
    cases = {
        "Band": figures,
        "Band, selected\nby the query": figures["selected_by_query"],
        "inequalities": figures["inequality"],
        "similarity": figures["similarity"],
    }
    with drawing(path) as (axes,):
        systems = {"Dovetail": "dovetail_s", "DuckDB batch": "duckdb_s", "only reading": "floor_s"}
        values = {name: [case[key] for case in cases.values()] for name, key in systems.items()}
        bars(axes, list(cases), values, unit="seconds")
        axes.set_title("joins without an equality; Spark refuses them as streams")


def _aggregates(figures: Figures, path: Path) -> None:
    with drawing(path, panels=2) as (queries, fanout):
        cases = figures["queries"]
        systems = {"Dovetail": "dovetail_s", "Spark": "spark_s", "DuckDB batch": "duckdb_s"}
        values = {name: [case[key] for case in cases.values()] for name, key in systems.items()}
        bars(queries, list(cases), values, unit="seconds")
        queries.set_title("BiStream's queries with aggregates")
        expected = "" if figures["spark_finished"] else "\n(expected)"
        seconds = {
            "factorized": figures["factorized_s"],
            "rows built": figures["materialized_s"],
            f"Spark{expected}": figures["spark_s"],
        }
        bars(fanout, list(seconds), {"s": list(seconds.values())}, unit="seconds")
        fanout.set_yscale("log")
        fanout.set_title(f"{figures['results'] // figures['rows']:,} results per row, counted and summed")


def _placement(figures: Figures, path: Path) -> None:
    cases = figures["cases"]
    with drawing(path, panels=2) as (shipped, seconds):
        ways = {"placed": "shipped_over_unshared", "spread evenly": "shipped_over_unshared_even"}
        values = {name: [case[key] for case in cases.values()] for name, key in ways.items()}
        dots(shipped, list(cases), values, unit="tuples shipped over unshared")
        shipped.set_ylim(bottom=0)
        dots(
            seconds,
            list(cases),
            {"near": [case["seconds_near"] for case in cases.values()]},
            unit="seconds until within 5%",
        )
        seconds.set_yscale("log")


def _partition(figures: Figures, path: Path) -> None:
    cases = {int(count): case for count, case in figures["ajoin"].items()}
    modes = {"every query for itself": "unshared", "once a key": "by_key", "once a partition": "shared"}
    with drawing(path, panels=2) as (shipped, seconds):
        series = {
            name: {count: case[f"shipped_{mode}"] / 1e6 for count, case in cases.items()}
            for name, mode in modes.items()
        }
        lines(shipped, series, unit="MB shipped", over="queries of AJoin's template")
        series = {
            name: {count: case[f"time_{mode}_s"] for count, case in cases.items()} for name, mode in modes.items()
        }
        series["by references"] = {count: case["references_s"] for count, case in cases.items()}
        lines(seconds, series, unit="seconds", over="queries of AJoin's template")
        for axes in (shipped, seconds):
            axes.set_yscale("log")
            plain_ticks(axes, list(cases))


def _faults(figures: Figures, path: Path) -> None:
    tried = {
        "drivers\nkilled": figures["driver"]["tried"],
        "executors,\nworkers killed": figures["executor"]["tried"],
        "files\ndamaged": figures["damage"]["tried"],
        "losses\nof power": figures["unsynced"]["tried"],
    }
    wrong = sum(
        figures[part][key]
        for part, keys in {
            "driver": ("lost", "doubled"),
            "executor": ("ended", "wrong"),
            "damage": ("silent",),
            "unsynced": ("unopened", "acknowledged_lost"),
        }.items()
        for key in keys
    )
    with drawing(path, panels=2) as (faults, cost):
        bars(faults, list(tried), {"tried": list(tried.values())}, unit="tried")
        faults.set_title(f"lost, doubled, wrong or silent: {wrong}")
        ratios = {name: each["ratio"] for name, each in figures["sync_cost"].items()}
        bars(cost, list(ratios), {"ratio": list(ratios.values())}, unit="time over that without")
        cost.set_title("syncs and checksums")


def _hostile(figures: Figures, path: Path) -> None:
    outcomes = {outcome.replace(" ", "\n"): count for outcome, count in figures["outcomes"].items()}
    with drawing(path) as (axes,):
        bars(axes, list(outcomes), {"tried": list(outcomes.values())}, unit="tried")
        axes.set_title(f"{figures['tried']:,} hostile things of {figures['mechanisms']['count']} mechanisms")


PLOT_BY_SUITE: Mapping[str, Callable[[Figures, Path], None]] = {
    "single": _single,
    "queries": _queries,
    "window": _window,
    "multiway": _multiway,
    "smallest": _smallest,
    "ilp": _ilp,
    "adaptive": _adaptive,
    "tpch-multi": _tpch_multi,
    "materialize": _materialize,
    "adhoc": _adhoc,
    "skew": _skew,
    "theta": _theta,
    "aggregates": _aggregates,
    "placement": _placement,
    "partition": _partition,
    "elastic": _elastic,
    "faults": _faults,
    "hostile": _hostile,
    "steady": _steady,
}
