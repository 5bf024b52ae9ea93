"""Suite `tpch-multi`: five and ten random joins over TPC-H as streams with their full history (CLASH section VII.A).

Three ways on our engine, over the same batches: each query in a session of its own, one after the other, their times
and bytes added; all in one session, each planned for itself; all in one session, planned together. A time counts from
the start of the first batch to the last commit, so that starting ten sessions is not held against them; bytes are what
the stores hold at the end. For the five also Spark's own joins, all queries at once, without watermarks: its state must
keep the full history too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measure import RunTime, Timing
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.peers.spark_peer import COMMON_SETTINGS, DEFAULT_STATE_STORE, drain
from benchmarks.planners import PLANNERS
from benchmarks.replay import Replay, StreamFolder, replay
from benchmarks.tpch.queries import TableQuery, draw_queries
from benchmarks.tpch.tables import TpchFiles, growth_is_meant, schema_ddl, select_sql, write_tpch
from benchmarks.verify import Answer, unequal_queries
from benchmarks.workbench import Workbench

DEFAULT_SCALE = 0.1
QUICK_SCALE = 0.002
BATCHES = 20
QUICK_BATCHES = 2
WARM_UP_BATCHES = 3
PLAIN, OVERLAPPING = 5, 5
MAX_RESULTS_PER_LINEITEM = 1
"""Results are written by each query for itself: with many more of them, writing would be all that is measured."""

MODES = ("independent", "shared", "joint")


@dataclass(frozen=True)
class QuerySet:
    """Queries over the tables, and what they must answer."""

    name: str
    files: TpchFiles
    query_by_name: Mapping[str, TableQuery]
    expected: Mapping[str, Answer]

    @property
    def sql_by_name(self) -> dict[str, str]:
        return {name: query.sql for name, query in self.query_by_name.items()}


@dataclass(frozen=True)
class ModeRun:
    seconds: float
    state_bytes: int
    state_rows: int
    matched_rows: int
    is_equal: bool


def run(bench: Workbench) -> dict[str, object]:
    quick = bench.options.quick
    scale = bench.options.scale_or(DEFAULT_SCALE, QUICK_SCALE)
    with bench.steps.step(f"TPC-H's tables at scale {scale}"):
        files = write_tpch(scale, QUICK_BATCHES if quick else BATCHES, bench.fresh_folder("tpch"))
    five, ten = _query_sets(bench, files)
    with growth_is_meant():
        _warm_up(bench, ten)
        figures = {case.name: _compare(bench, case) for case in (five, ten)}
    figures["five"] |= _spark_figures(bench, five)
    return {
        "scale": scale,
        "batches": files.batch_count,
        "rows": sum(files.rows_by_table.values()),
        "queries": ten.sql_by_name,
        **figures,
        "results_equal": all(bool(figure["results_equal"]) for figure in figures.values()),
    }


def _query_sets(bench: Workbench, files: TpchFiles) -> tuple[QuerySet, QuerySet]:
    max_results = MAX_RESULTS_PER_LINEITEM * files.rows_by_table["lineitem"]
    with bench.steps.step("random queries and their right answers, by DuckDB"), _duckdb(bench, files) as duckdb:
        drawn = draw_queries(duckdb, max_results, bench.options.seed, plain=PLAIN, overlapping=OVERLAPPING)
        query_by_name = {f"q{number}": query for number, query in enumerate(drawn)}
        expected = duckdb.answers({name: query.sql for name, query in query_by_name.items()})
    names = list(query_by_name)[:PLAIN]
    five = {name: query_by_name[name] for name in names}
    return (
        QuerySet("five", files, five, {name: expected[name] for name in names}),
        QuerySet("ten", files, query_by_name, expected),
    )


def _duckdb(bench: Workbench, files: TpchFiles) -> DuckDbViews:
    return DuckDbViews(select_sql(files), bench.options.cores)


def _warm_up(bench: Workbench, case: QuerySet) -> None:
    with bench.steps.step("warming up"):
        part = case.files.prefix(min(WARM_UP_BATCHES, case.files.batch_count), bench.fresh_folder("warm-up"))
        _replay(bench, part, list(case.query_by_name.items()), "shared")


def _compare(bench: Workbench, case: QuerySet) -> dict[str, object]:
    runs_by_mode: dict[str, list[ModeRun]] = {mode: [] for mode in MODES}
    for _ in range(bench.options.repeats_or(2)):
        for mode in MODES:  # by turns, so that whatever disturbs the machine disturbs all of them
            with bench.steps.step(f"{len(case.query_by_name)} queries, {mode}"):
                runs_by_mode[mode].append(_run_mode(bench, case, mode))
            newest = runs_by_mode[mode][-1]
            bench.steps.note(f"  {newest.seconds:.2f} s, {newest.state_bytes / 1e6:.1f} MB of state")
    best = {mode: min(runs, key=lambda run: run.seconds) for mode, runs in runs_by_mode.items()}
    all_runs = [run for runs in runs_by_mode.values() for run in runs]
    return {
        **{f"{mode}_s": round(best[mode].seconds, 3) for mode in MODES},
        **{f"{mode}_bytes": best[mode].state_bytes for mode in MODES},
        **{f"{mode}_rows": best[mode].state_rows for mode in MODES},
        **{f"{mode}_matched_rows": best[mode].matched_rows for mode in MODES},
        "speedup": round(best["independent"].seconds / best["joint"].seconds, 2),
        "bytes_ratio": round(best["independent"].state_bytes / best["joint"].state_bytes, 2),
        "rows_ratio": round(best["independent"].state_rows / best["joint"].state_rows, 2),
        "results": sum(answer.row_count for answer in case.expected.values()),
        "results_equal": all(run.is_equal for run in all_runs),
        "spread": {mode: sorted(round(run.seconds, 3) for run in runs) for mode, runs in runs_by_mode.items()},
    }


def _run_mode(bench: Workbench, case: QuerySet, mode: str) -> ModeRun:
    queries = list(case.query_by_name.items())
    groups = [[query] for query in queries] if mode == "independent" else [queries]
    planner = "shared" if mode == "independent" else mode
    replays = [_replay(bench, case.files, group, planner) for group in groups]
    answers = {name: answer for each in replays for name, answer in each.answer_by_name.items()}
    return ModeRun(
        seconds=sum(each.seconds for each in replays),
        state_bytes=sum(each.state_bytes for each in replays),
        state_rows=sum(each.state_rows for each in replays),
        matched_rows=sum(sum(each.matched_rows) for each in replays),
        is_equal=_is_equal(bench, f"Dovetail, {mode}", case, answers),
    )


def _is_equal(bench: Workbench, system: str, case: QuerySet, observed: Mapping[str, Answer]) -> bool:
    unequal = unequal_queries(case.expected, observed)
    for name in unequal[:5]:
        bench.steps.note(f"[red]{system} differs on {name}: {observed.get(name)}, not {case.expected[name]}[/red]")
    return not unequal


def _replay(bench: Workbench, files: TpchFiles, queries: Sequence[tuple[str, TableQuery]], planner: str) -> Replay:
    """A session reads the tables that its queries join, and no others."""
    bench.collect_garbage()
    tables = sorted({table for _, query in queries for table in query.tables})
    streams = [StreamFolder(table, files.path(table), schema_ddl(files, table)) for table in tables]
    sql_by_name = {name: query.sql for name, query in queries}
    return replay(bench.spark, streams, sql_by_name, bench.fresh_folder("dovetail"), PLANNERS[planner])


def _spark_figures(bench: Workbench, case: QuerySet) -> dict[str, object]:
    with bench.steps.step(f"{len(case.query_by_name)} queries, Spark"):
        bench.collect_garbage()
        time, is_equal = _run_spark(bench, case)
    bench.noted(Timing((time,)))
    stopped = {} if time.is_finished else {"spark_stopped_after_s": round(time.seconds, 1)}
    return {
        "spark_s": round(time.seconds, 3) if time.is_finished else None,
        "spark_done_share": round(time.done_share, 3),
        "spark_results_equal": is_equal,
        **stopped,
    }


def _run_spark(bench: Workbench, case: QuerySet) -> tuple[RunTime, bool | None]:
    session = bench.spark.newSession()
    for key, value in (*COMMON_SETTINGS.items(), *DEFAULT_STATE_STORE.settings):
        session.conf.set(key, value)
    for table in case.files.rows_by_table:
        folder = StreamFolder(table, case.files.path(table), schema_ddl(case.files, table))
        folder.read(session).createOrReplaceTempView(table)
    frames = {name: session.sql(sql) for name, sql in case.sql_by_name.items()}
    rows = sum(case.files.rows_by_table[table] for query in case.query_by_name.values() for table in query.tables)
    run = drain(frames, bench.fresh_folder("spark"), time_limit_s=bench.options.peer_time_limit_s, input_rows=rows)
    if not run.time.is_finished:
        return run.time, None  # a stopped run has a part of the answer
    with _duckdb(bench, case.files) as duckdb:
        observed = {name: duckdb.answer_of_files(path) for name, path in run.output_by_name.items()}
    return run.time, _is_equal(bench, "Spark", case, observed)
