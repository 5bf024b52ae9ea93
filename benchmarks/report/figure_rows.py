"""The lines that each suite's figures become, for the table after a run and for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.partition.rows import partition_rows, placement_rows
from benchmarks.report.figure_row import FigureRow, Figures, times_text
from benchmarks.steady.rows import steady_rows


def _single_rows(figures: Figures) -> list[FigureRow]:
    by_store = figures["spark_rows_per_s_by_state_store"]
    stores = ", ".join(f"{name} {rate:,}" for name, rate in by_store.items())
    return [
        FigureRow("input rows; results", f"{figures['rows']:,}; {figures['results']:,}"),
        FigureRow("Dovetail, rows/s", f"{figures['dovetail_rows_per_s']:,}"),
        FigureRow("Spark, rows/s by state store", stores),
        FigureRow("DuckDB batch, rows/s", f"{figures['duckdb_rows_per_s']:,}"),
        FigureRow(
            "faster than Spark", times_text(figures["ratio_spark"], is_lower_bound=bool(figures["spark_stopped"]))
        ),
        FigureRow("time over DuckDB batch", times_text(figures["ratio_duckdb"])),
        FigureRow("time over only reading into Python", times_text(figures["floor_ratio"])),
    ]


def spark_text(figures: Figures) -> str:
    if figures["spark_s"] is not None:
        return f"{figures['spark_s']} s"
    if figures.get("spark_stopped_after_s"):
        return f"stopped after {figures['spark_stopped_after_s']} s, {figures['spark_done_share']:.0%} done"
    return "not run"


def _queries_rows(figures: Figures) -> list[FigureRow]:
    rows = [FigureRow("input rows", f"{figures['rows']:,}")]
    for count, figure in figures["by_queries"].items():
        text = f"{figure['dovetail_s']} s; Spark {spark_text(figure)}; {figure['results']:,} results"
        rows.append(FigureRow("1 query" if count == "1" else f"{count} queries", text))
    stopped = figures["by_queries"]["20"]["spark_s"] is None
    rows.append(
        FigureRow("faster than Spark, 20 queries", times_text(figures["ratio_spark_20"], is_lower_bound=stopped))
    )
    growth_by_count = {count: figures[f"growth_{count}"] for count in (100, 500)}
    return rows + [
        FigureRow(f"time of {count} queries over one", times_text(growth))
        for count, growth in growth_by_count.items()
        if growth is not None
    ]


def _window_rows(figures: Figures) -> list[FigureRow]:
    rows = [FigureRow("rows a batch", f"{figures['rows_per_batch']:,}")]
    for window_s, figure in figures["by_window"].items():
        rows.append(FigureRow(f"window {window_s} s: batch, median", f"{figure['batch_ms_p50']:.0f} ms"))
    rows.append(FigureRow("batch time, window 300 s over 1 s", times_text(figures["growth_300"])))
    return rows


def _multiway_rows(figures: Figures) -> list[FigureRow]:
    rows = [FigureRow("rows a stream", f"{figures['rows_per_stream']:,}")]
    for count, figure in figures["by_relations"].items():
        times = f"{figure['dovetail_s']} s; Spark {spark_text(figure)}; DuckDB batch {figure['duckdb_s']} s"
        rows.append(FigureRow(f"{count}-way chain", times))
        ratio = times_text(figure["ratio_spark"], is_lower_bound=figure["spark_s"] is None)
        rows.append(FigureRow(f"{count}-way chain, faster than Spark", ratio))
    return rows


def _smallest_rows(figures: Figures) -> list[FigureRow]:
    return [
        FigureRow("rows a batch", f"{figures['rows_per_batch']}"),
        FigureRow("batch, median", f"{figures['batch_ms_p50']:.0f} ms"),
        FigureRow("batch, 90th percentile", f"{figures['batch_ms_p90']:.0f} ms"),
        FigureRow("Spark's batch, median", f"{figures['spark_batch_ms_p50']:.0f} ms"),
    ]


def _ilp_rows(figures: Figures) -> list[FigureRow]:
    return [_ilp_row(case) for case in (*figures["cases"], *figures["partitioned_cases"])]


def _ilp_row(case: Figures) -> FigureRow:
    tasks = f", {case['parallelism']} tasks a store" if case["parallelism"] > 1 else ""
    measured = f"{case['queries']} queries of {case['size']} over {case['relations']} relations{tasks}"
    proven = "not proven" if case["seconds_optimal"] is None else f"optimal {case['seconds_optimal']} s"
    near = "" if case["seconds_1pct"] is None else f"within 1% {case['seconds_1pct']} s; "
    close = f"within 5% of the best known {case['seconds_5pct_of_best']} s"
    return FigureRow(measured, f"saving {case['saving']:.0%}; {near}{close}; {proven}; gap {case['gap']:.1%}")


def _adaptive_rows(figures: Figures) -> list[FigureRow]:
    return [row for name, case in (("8a", figures), ("8b", figures["b"])) for row in _adaptive_case_rows(name, case)]


def _adaptive_case_rows(name: str, case: Figures) -> list[FigureRow]:
    rates = ", ".join(f"{rate:,}" for rate in sorted(set(case["rows_per_second"].values())))
    peaks = f"{case['static_peak_rows']:,}; {case['adaptive_peak_rows']:,}"
    settled = f"{case['static_settled_rows']:,.0f}; {case['adaptive_settled_rows']:,.0f}"
    return [
        FigureRow(
            f"{name}, {rates} rows a second and stream: batch after the change, static plan; adaptive",
            f"{case['static_s']} s; {case['adaptive_s']} s",
        ),
        FigureRow(f"{name}: static over adaptive", times_text(case["ratio"])),
        FigureRow(f"{name}: most partial results in a batch, static plan; adaptive", peaks),
        FigureRow(f"{name}: partial results in a batch after the change, static plan; adaptive", settled),
        FigureRow(f"{name}: statistics, share of task time", f"{case['statistics_share']:.1%}"),
    ]


def _tpch_multi_rows(figures: Figures) -> list[FigureRow]:
    rows = [FigureRow("TPC-H scale; input rows", f"{figures['scale']}; {figures['rows']:,}")]
    for name in ("five", "ten"):
        case = figures[name]
        times = [f"{mode} {case[f'{mode}_s']} s" for mode in ("independent", "shared", "joint")]
        spark = [f"Spark {spark_text(case)}"] if "spark_s" in case else []
        rows += [
            FigureRow(f"{name} queries, {case['results']:,} results", "; ".join((*times, *spark))),
            FigureRow(f"{name} queries: independent over joint, time", times_text(case["speedup"])),
            FigureRow(f"{name} queries: independent over joint, bytes of state", times_text(case["bytes_ratio"])),
            FigureRow(f"{name} queries: independent over joint, rows stored", times_text(case["rows_ratio"])),
        ]
    return rows


def _materialize_rows(figures: Figures) -> list[FigureRow]:
    return [
        FigureRow(
            f"{name}, {tree.replace('_', '-')}: rows shipped; rows stored; time of batches; of planning",
            _tree_text(case[tree]),
        )
        for name, case in figures["cases"].items()
        for tree in ("flat", "left_deep", "optimized")
    ]


def _tree_text(tree: Figures) -> str:
    return f"{tree['rows_shipped']:,}; {tree['rows_stored']:,}; {tree['seconds']} s; {tree['planning_seconds']} s"


def _adhoc_rows(figures: Figures) -> list[FigureRow]:
    rates, created = figures["sustained_rows_per_s"], figures["rest_created"]
    per_second, running = figures["requests_per_s"], figures["queries_running"]
    churn = f"{per_second} creates and drops a second, {running} queries"
    grown = f"growing to {figures['queries_grown']} queries"
    return [
        FigureRow("joins of two to five streams; similarity by Eq. 3", f"{figures['similarity']}"),
        FigureRow(f"{churn}: rows/s before; during; after", "; ".join(f"{rate:,}" for rate in rates.values())),
        FigureRow(f"{churn}: throughput over a quiet system's", times_text(figures["throughput_ratio"])),
        FigureRow(f"{churn}: {_DEPLOYED}", _deployed(figures, "")),
        FigureRow(f"{churn}: create answered, median; 99%", _answered(figures, "")),
        FigureRow(f"{grown}, one by one through {created['through']}", f"{created['seconds']} s"),
        FigureRow(f"{grown}: {_DEPLOYED}", _deployed(figures, "grown_")),
        FigureRow(f"{grown}: create answered, median; 99%", _answered(figures, "grown_")),
        FigureRow(
            f"{grown}, {figures['arriving_rows_per_s']:,} rows/s arrive: arrival to committed answer, median; 99%",
            f"{figures['latency_p50_s']} s; {figures['latency_p99_s']} s",
        ),
        FigureRow(f"restart with {figures['queries_grown']} queries to the first commit", f"{figures['restart_s']} s"),
        FigureRow(
            "registered queries; create answered, 99%; a batch",
            f"{figures['registered_2000']:,}; {figures['registered_create_p99_ms']} ms; "
            f"{figures['registered_batch_s'][-1]} s",
        ),
        FigureRow("wrong of the queries checked", f"{figures['wrong_results']} of {figures['queries_checked']:,}"),
    ]


def _skew_rows(figures: Figures) -> list[FigureRow]:
    names = {"hash": "hash", "contrand": f"ContRand, {figures['subgroups']} subgroups", "split": "hot keys split"}
    rows = [FigureRow("input rows an exponent; units", f"{figures['rows']:,}; {figures['units']}")]
    for exponent, by_routing in figures["imbalance"].items():
        for routing, imbalance in by_routing.items():
            rows.append(
                FigureRow(
                    f"Zipf {exponent}, {names[routing]}: slowest unit over mean, by work; by task seconds; total time",
                    f"{imbalance}; {figures['imbalance_seconds'][exponent][routing]}; "
                    f"{figures['total_s'][exponent][routing]} s",
                )
            )
    return rows


_DEPLOYED = "request to first batch in effect, median; 99%"


def _deployed(figures: Figures, prefix: str) -> str:
    p50, p99 = figures[f"{prefix}deploy_p50_batches"], figures[f"{prefix}deploy_p99_batches"]
    return f"{p50}; {p99} batches ({figures[f'{prefix}deploy_p99_s']} s)"


def _answered(figures: Figures, prefix: str) -> str:
    return f"{figures[f'{prefix}create_p50_ms']} ms; {figures[f'{prefix}create_p99_ms']} ms"


def _theta_rows(figures: Figures) -> list[FigureRow]:
    units = figures["units"]
    rows = [
        FigureRow("TPC-H scale; Band's input rows; results", _theta_size(figures)),
        FigureRow(f"Band, {units} units", f"{figures['rows_per_s']:,} rows/s; {_theta_times(figures)}"),
        FigureRow(f"Band, {units} units: time over DuckDB batch", times_text(figures["ratio_duckdb"])),
        FigureRow(f"Band, {units} units: time over only reading into Python", times_text(figures["floor_ratio"])),
        FigureRow("Band, a unit a core", f"{figures['unit_a_core_s']} s"),
        FigureRow(f"Band, {units} units: rows stored over input rows", f"{figures['stored_rows_over_input_rows']:.2f}"),
    ]
    for count, memory in figures["by_units"].items():
        ratio = memory["matrix_stored_rows"] / memory["ours_stored_rows"]
        rows.append(FigureRow(f"Band, {count} units: join-matrix's stored rows over ours", f"{ratio:.2f}x"))
    for name, text in (
        ("selected_by_query", "Band, selected by the query"),
        ("inequality", "inequality join"),
        ("similarity", "similarity"),
    ):
        case = figures[name]
        rows.append(FigureRow(f"{text}: {case['rows']:,} rows, {case['results']:,} results", _theta_times(case)))
        rows.append(FigureRow(f"{text}: time over DuckDB batch", times_text(case["ratio_duckdb"])))
    equi = figures["equi_part"]
    stopped = equi["spark_s"] is None
    rows.append(FigureRow("Band's equi-part", f"{equi['dovetail_s']} s; Spark {spark_text(equi)}"))
    rows.append(
        FigureRow("Band's equi-part, faster than Spark", times_text(equi["ratio_spark"], is_lower_bound=stopped))
    )
    return rows


def _theta_size(figures: Figures) -> str:
    return f"{figures['scale']}; {figures['rows']:,}; {figures['results']:,}"


def _theta_times(figures: Figures) -> str:
    return f"{figures['dovetail_s']} s; DuckDB batch {figures['duckdb_s']} s; only reading {figures['floor_s']} s"


def _aggregates_rows(figures: Figures) -> list[FigureRow]:
    rows = [
        FigureRow(
            f"{name} with aggregation, {case['rows']:,} rows, {case['groups']} groups",
            f"{case['dovetail_s']} s; DuckDB batch {case['duckdb_s']} s; Spark batch {case['spark_batch_s']} s; "
            f"Spark streaming {_refused(case) or spark_text(case)}",
        )
        for name, case in figures["queries"].items()
    ]
    size = f"{figures['rows']:,} rows, {figures['results']:,} results"
    spark = f"{figures['spark_s']} s"
    if not figures["spark_finished"]:
        spark = f"{spark} expected, {spark_text({**figures, 'spark_s': None})}"
    return [
        *rows,
        FigureRow(f"count and sum over {size}: rows built", f"{figures['materialized_s']} s"),
        FigureRow(
            f"count and sum over {size}: factorized; only reading",
            f"{figures['factorized_s']} s; {figures['floor_s']} s",
        ),
        FigureRow(f"count and sum over {size}: Spark", spark),
        FigureRow("factorized, faster than with rows built", times_text(figures["ratio_materialized"])),
        FigureRow("factorized, faster than Spark", times_text(figures["ratio_spark"])),
        FigureRow("sums of integers, decimals and doubles equal", "yes" if figures["sums_equal"] else "NO"),
    ]


def _refused(figures: Figures) -> str:
    return "refused" if figures.get("spark_refusal") else ""


def _elastic_rows(figures: Figures) -> list[FigureRow]:
    units = " -> ".join(map(str, figures["units"]))
    return [
        FigureRow(
            "input rows; batches, one every", f"{figures['rows']:,}; {figures['batches']}, {figures['trigger_s']:g} s"
        ),
        FigureRow("units", f"{units}; changes in the flicker: {figures['flicker_changes']}"),
        FigureRow("stored rows moved; results wrong", f"{figures['state_rows_moved']}; {figures['results_wrong']}"),
        FigureRow("most batches longer than twice the usual, per change", f"{figures['long_batches_per_change']}"),
        FigureRow(
            "from file to committed answers, median; longest",
            f"{figures['latency_p50_s']} s; {figures['latency_max_s']} s",
        ),
    ]


def _faults_rows(figures: Figures) -> list[FigureRow]:
    driver, executor = figures["driver"], figures["executor"]
    damage, unsynced = figures["damage"], figures["unsynced"]
    costs = "; ".join(f"`{name}` {cost['ratio']}x" for name, cost in figures["sync_cost"].items())
    return [
        FigureRow("drivers killed; answers lost; doubled", f"{driver['tried']}; {driver['lost']}; {driver['doubled']}"),
        FigureRow(
            "executors and Python workers killed; sessions ended; answers wrong",
            f"{executor['tried']}; {executor['ended']}; {executor['wrong']}",
        ),
        FigureRow(
            "files damaged; told of; answers exact; silently wrong",
            f"{damage['tried']}; {damage['told']}; {damage['exact']}; {damage['silent']}",
        ),
        FigureRow(
            "images left by a loss of power; not opened; acknowledged and lost",
            f"{unsynced['tried']}; {unsynced['unopened']}; {unsynced['acknowledged_lost']}",
        ),
        FigureRow("time with syncs and checksums over neither", costs),
    ]


def _hostile_rows(figures: Figures) -> list[FigureRow]:
    spark, functions, mechanisms = figures["on_spark"], figures["functions"], figures["mechanisms"]["count"]
    channels = ", ".join(f"{count:,} by {channel}" for channel, count in figures["tried_by_channel"].items())
    missed = "; ".join(str(figures[key]) for key in ("culprits_missed", "hangs", "http_5xx"))
    usual = f"{spark['slowest_batch_ms']} ms; {spark['usual_batch_ms']} ms; {figures['slowest_batch_over_usual']}x"
    return [
        FigureRow("different queries, acts, files and requests; mechanisms", f"{figures['tried']:,}; {mechanisms}"),
        FigureRow("tried", channels),
        *(FigureRow(f"of these {outcome}", f"{count:,}") for outcome, count in figures["outcomes"].items()),
        FigureRow("batches lost; neighbours wrong", f"{figures['batches_lost']}; {figures['neighbours_wrong']}"),
        FigureRow("culprits missed; hangs; answers 5xx", missed),
        FigureRow("slowest batch with something hostile; usual batch; ratio", usual),
        FigureRow("calls of functions; batches lost", f"{functions['tried']:,}; {functions['batches_lost']}"),
    ]


ROWS_BY_SUITE: Mapping[str, Callable[[Figures], list[FigureRow]]] = {
    "single": _single_rows,
    "queries": _queries_rows,
    "window": _window_rows,
    "multiway": _multiway_rows,
    "smallest": _smallest_rows,
    "ilp": _ilp_rows,
    "adaptive": _adaptive_rows,
    "tpch-multi": _tpch_multi_rows,
    "materialize": _materialize_rows,
    "adhoc": _adhoc_rows,
    "skew": _skew_rows,
    "theta": _theta_rows,
    "aggregates": _aggregates_rows,
    "placement": placement_rows,
    "partition": partition_rows,
    "elastic": _elastic_rows,
    "faults": _faults_rows,
    "hostile": _hostile_rows,
    "steady": steady_rows,
}
