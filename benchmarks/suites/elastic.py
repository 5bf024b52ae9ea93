"""Suite `elastic`: the input rate rises, stays, flickers and falls, and units come and go (BiStream's Figure 12, B9).

A real session with a processing-time trigger reads files that a feeder drops every second, whether anybody keeps up or
not. A unit is a partition; it is full when it keeps its budget of bytes, or when a batch takes the whole interval. For
every batch the suite notes units, load, rows, how long it took, and its latency: from the moment its oldest file was
there to its commit. At every change it notes the stored rows that were rewritten for it. The answer is compared with
DuckDB's, row by row.

Units run on the cores that the machine has, so more of them than cores give no speed: what drives the changes here is
memory, and time is the second trigger that could. Workers are warm: a run with all units comes before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from benchmarks.elastic.feed import Fed, Feeder, Phase, RateProfile, stream_folders
from benchmarks.local_runs import answers_of
from benchmarks.measure import median
from benchmarks.options import BenchError
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.replay import StreamFolder, duckdb_views
from benchmarks.workbench import Workbench
from dovetail import Session
from dovetail.engine.delivery.commit_news import CommitNews
from dovetail.engine.options.engine_options import with_tuning

ROWS_PER_S = 2000
MAX_UNITS = 8
USUAL_BATCHES = 6
"""So many batches before a change say how long one usually takes."""
BATCHES_OF_A_CHANGE = 3
"""A change is blamed for a long batch among the first so many that run with it."""

SQL = (
    "SELECT a.id AS a_id, b.id AS b_id FROM a JOIN b ON a.k = b.k "
    "AND a.ts >= b.ts - INTERVAL 6 SECONDS AND a.ts <= b.ts + INTERVAL 6 SECONDS"
)


@dataclass(frozen=True)
class Scenario:
    """A unit may keep `bytes_a_rate` for each row a second of the calm rate: so much that one is half full then."""

    trigger_s: float
    phases: tuple[Phase, ...]
    scale_after: int
    bytes_a_rate: int

    def options(self, rows_per_s: int) -> dict[str, Any]:
        return {
            "elastic": True,
            "partitions": 1,
            "max_partitions": MAX_UNITS,
            "max_bytes_per_partition": self.bytes_a_rate * rows_per_s,
            "scale_after": self.scale_after,
            # One task for all of a small batch would make units mean nothing.
            "small_batch_rows": 0,
        }


_FLICKER = (*[10.0] * 2, *[4.0] * 8, *[0.5] * 4, *[4.0] * 4)
"""A burst and a lull, each of which takes the load across a threshold, but not for long."""

FULL = Scenario(
    trigger_s=3.0,
    phases=(
        Phase("calm", 30, (1.0,)),
        Phase("twice", 36, (2.0,)),
        Phase("four times", 42, (4.0,)),
        Phase("flicker", 36, _FLICKER),
        Phase("fall", 45, (1.0,)),
    ),
    scale_after=5,
    bytes_a_rate=1000,
)
QUICK = Scenario(
    trigger_s=1.0,
    phases=(
        Phase("calm", 3, (1.0,)),
        Phase("four times", 9, (4.0,)),
        Phase("flicker", 4, (6.0, 2.0)),
        Phase("fall", 12, (1.0,)),
    ),
    scale_after=3,
    bytes_a_rate=700,
)


@dataclass
class ElasticRun:
    """Figures of every batch, in order."""

    batches: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    answers: pa.Table | None = None
    fed: Sequence[Fed] = ()

    @property
    def changes(self) -> list[int]:
        """The batches that were the first to run with another number of units."""
        units = [batch["units"] for batch in self.batches]
        return [place for place in range(1, len(units)) if units[place] != units[place - 1]]

    def long_batches(self, change: int) -> int:
        """Among the first batches of a change, those longer than twice the usual."""
        before = [batch["batch_s"] for batch in self.batches[max(change - USUAL_BATCHES, 0) : change]]
        first = self.batches[change : change + BATCHES_OF_A_CHANGE]
        return sum(batch["batch_s"] > 2 * median(before) for batch in first)


def run(bench: Workbench) -> dict[str, object]:
    scenario = QUICK if bench.options.quick else FULL
    rows_per_s = ROWS_PER_S if bench.options.rows is None else _rate(bench.options.rows, scenario)
    profile = RateProfile(rows_per_s, scenario.phases, bench.options.seed)
    with bench.steps.step("warming up, with all units"):
        short = RateProfile(rows_per_s, (Phase("warm", 4, (2.0,)),), bench.options.seed)
        _run(bench, short, scenario, {"partitions": MAX_UNITS, "small_batch_rows": 0})
    with bench.steps.step(f"{profile.seconds} s of input at {rows_per_s:,} rows a second and stream, and multiples"):
        folders, made = _run(bench, profile, scenario, scenario.options(rows_per_s))
    for reason in made.reasons:
        bench.steps.note(reason)
    with bench.steps.step("the right answer, by DuckDB"), _views(folders, bench.options.cores) as duckdb:
        results, wrong = compare(duckdb, made.answers)
    if wrong:
        bench.steps.note(f"[red]{wrong} answers differ from DuckDB's[/red]")
    return figures_of(made, profile, scenario) | {"results": results, "results_wrong": wrong}


def _rate(rows: int, scenario: Scenario) -> int:
    """Of one stream at factor 1, if there shall be so many rows in all."""
    return max(1, rows // (2 * sum(RateProfile(1000, scenario.phases, 0).rows_by_second()) // 1000))


def _run(
    bench: Workbench, profile: RateProfile, scenario: Scenario, options: Mapping[str, Any]
) -> tuple[list[StreamFolder], ElasticRun]:
    folders = stream_folders(bench.fresh_folder("streams"))
    feeder = Feeder(profile, folders)
    made = ElasticRun()
    session = Session(bench.spark, bench.fresh_folder("elastic"), **with_tuning(options))
    try:
        for folder in folders:
            frame = bench.spark.readStream.schema(folder.schema_ddl).parquet(str(folder.path))
            session.create_stream(folder.name, frame, folder.event_time)
        query = session.create_query(SQL, name="q")
        session.engine.answers.listen(lambda news: made.batches.append(_noted(news, feeder)))
        session.start(trigger=f"{round(scenario.trigger_s * 1000)} milliseconds")
        with feeder:
            while not _is_fed(feeder, profile):
                if session.await_termination(0.2):
                    raise BenchError("the session ended before its input")
            feeder.join()
        session.process_all_available()
        if query.status.error:
            raise BenchError(f"the query failed: {query.status.error}")
        made.fed = tuple(feeder.fed)
        made.reasons = [reason for change in session.engine.plans.changes for reason in change.reasons]
        made.answers = answers_of(session.engine, query.id)
    finally:
        session.stop()
    return folders, made


def _is_fed(feeder: Feeder, profile: RateProfile) -> bool:
    return len(feeder.fed) == profile.seconds


def _noted(news: CommitNews, feeder: Feeder) -> dict[str, Any]:
    figures, scale = news.figures, news.figures.scale
    return {
        "at_s": time.monotonic() - feeder.began_s,
        "rows": figures.input_rows,
        "batch_s": figures.durations.total_s,
        "units": len(figures.units),
        "load": None if scale is None else scale.load.mean,
        "memory_load": None if scale is None else scale.load.memory,
        "time_load": None if scale is None else scale.load.time,
        "moved_rows": 0 if scale is None else scale.moved_rows,
    }


def _views(folders: list[StreamFolder], threads: int) -> DuckDbViews:
    return DuckDbViews(duckdb_views(folders), threads)


def compare(duckdb: DuckDbViews, answers: pa.Table) -> tuple[int, int]:
    """How many answers there are, and how many are missing or too much."""
    duckdb.add_table("answered", answers)
    duckdb.run_statement(f"CREATE TEMP TABLE expected AS {SQL}")
    duckdb.run_statement("CREATE TEMP TABLE observed AS FROM answered")
    wrong = duckdb.number(
        "SELECT count(*) FROM ((FROM expected EXCEPT ALL FROM observed) UNION ALL "
        "(FROM observed EXCEPT ALL FROM expected))"
    )
    return duckdb.number("SELECT count(*) FROM expected"), wrong


def latencies(batches: Sequence[Mapping[str, Any]], fed: Sequence[Fed]) -> list[float | None]:
    """By batch, how long its oldest file waited until its answers were committed; None for a batch without rows."""
    found: list[float | None] = []
    rows_before = 0
    for batch in batches:
        oldest = next((file for file in fed if file.rows_so_far > rows_before), None)
        found.append(batch["at_s"] - oldest.at_s if oldest is not None and batch["rows"] else None)
        rows_before += batch["rows"]
    return found


def figures_of(made: ElasticRun, profile: RateProfile, scenario: Scenario) -> dict[str, object]:
    changes = made.changes
    lower_s, upper_s = profile.bounds("flicker")
    # What a flicker asks for takes effect when it was asked for often enough.
    upper_s += round(scenario.scale_after * scenario.trigger_s)
    flickers = [change for change in changes if lower_s < made.batches[change]["at_s"] <= upper_s]
    long_batches = [made.long_batches(change) for change in changes]
    waits = latencies(made.batches, made.fed)
    known = [wait for wait in waits if wait is not None]
    return {
        "rows": sum(batch["rows"] for batch in made.batches),
        "batches": len(made.batches),
        "trigger_s": scenario.trigger_s,
        "changes": len(changes),
        "units": [made.batches[0]["units"], *(made.batches[change]["units"] for change in changes)],
        "reasons": made.reasons,
        "flicker_changes": len(flickers),
        "state_rows_moved": sum(batch["moved_rows"] for batch in made.batches),
        "long_batches_per_change": max(long_batches, default=0),
        "long_batches": long_batches,
        "latency_p50_s": round(median(known), 2),
        "latency_max_s": round(max(known), 2),
        "series": {
            "seconds": list(range(profile.seconds)),
            "rows_per_s": [2 * rows for rows in profile.rows_by_second()],
            **{
                name: [None if batch[name] is None else round(batch[name], 3) for batch in made.batches]
                for name in ("at_s", "rows", "batch_s", "units", "load", "memory_load", "time_load", "moved_rows")
            },
            "latency_s": [None if wait is None else round(wait, 3) for wait in waits],
        },
    }
