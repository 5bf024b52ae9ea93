"""The suite `elastic` in its short form, and how its figures are counted."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from rich.console import Console

from benchmarks.elastic.feed import Fed, Feeder, Phase, RateProfile, stream_folders
from benchmarks.elastic.plot import write_plot
from benchmarks.measure import Steps
from benchmarks.options import BenchOptions
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.replay import duckdb_views
from benchmarks.report.table import figure_rows
from benchmarks.suites import elastic
from benchmarks.suites.elastic import ElasticRun, compare, figures_of, latencies
from benchmarks.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROFILE = RateProfile(100, (Phase("calm", 2, (1.0,)), Phase("flicker", 4, (3.0, 0.5))), 1)


def batch(at_s: float, units: int, batch_s: float = 0.5, rows: int = 200, moved_rows: int = 0) -> dict[str, Any]:
    loads = {"load": 0.5, "memory_load": 0.5, "time_load": None}
    return {"at_s": at_s, "units": units, "batch_s": batch_s, "rows": rows, "moved_rows": moved_rows, **loads}


def test_the_rate_follows_its_phases() -> None:
    assert PROFILE.rows_by_second() == [100, 100, 300, 50, 300, 50]
    assert PROFILE.bounds("flicker") == (2, 6)


def test_the_feeder_drops_a_file_of_each_stream_every_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.elastic.feed.FILE_S", 0.01)
    folders = stream_folders(tmp_path)
    with Feeder(PROFILE, folders) as feeder:
        feeder.join()
    assert [file.rows_so_far for file in feeder.fed] == [200, 400, 1000, 1100, 1700, 1800]
    for folder in folders:
        assert sorted(path.name for path in folder.path.iterdir()) == [f"{second:05d}.parquet" for second in range(6)]
    rows = duckdb.sql(
        f"SELECT count(*), count(DISTINCT id), max(ts) - min(ts) < INTERVAL 6 SECONDS FROM '{tmp_path}/a/*.parquet'"
    )
    assert rows.fetchall() == [(900, 900, True)]


def test_latency_is_from_the_oldest_file_of_a_batch_to_its_commit() -> None:
    fed = [Fed(1.0, 100), Fed(2.0, 200), Fed(3.0, 300)]
    batches = [batch(2.5, 1, rows=200), batch(2.6, 1, rows=0), batch(3.25, 1, rows=100)]
    assert latencies(batches, fed) == [1.5, None, 0.25]


def test_changes_and_what_they_cost_are_counted() -> None:
    units = [1, 1, 2, 2, 2, 2, 4, 4]
    seconds = [0.5, 0.5, 1.1, 0.9, 0.5, 0.5, 0.5, 3.0]
    noted = [batch(at, *each) for at, each in enumerate(zip(units, seconds, strict=True))]
    run = ElasticRun(noted, fed=[Fed(0.0, 10_000)])
    run.batches[6]["moved_rows"] = 7
    assert run.changes == [2, 6]
    assert [run.long_batches(change) for change in run.changes] == [1, 1]
    figures = figures_of(run, PROFILE, elastic.QUICK)
    assert figures["changes"] == 2
    assert figures["units"] == [1, 2, 4]
    assert figures["long_batches_per_change"] == 1
    assert figures["state_rows_moved"] == 7
    assert figures["flicker_changes"] == 1


def test_answers_that_are_missing_or_too_much_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.elastic.feed.FILE_S", 0.0)
    folders = stream_folders(tmp_path)
    with Feeder(RateProfile(5000, (Phase("calm", 2, (1.0,)),), 1), folders) as feeder:
        feeder.join()
    with DuckDbViews(duckdb_views(folders), 1) as judge:
        right = judge.rows(elastic.SQL)
    assert right.num_rows > 10
    doubled = pa.concat_tables([right.slice(2), right.slice(right.num_rows - 1)])
    for table, wrong in ((right, 0), (doubled, 3)):
        with DuckDbViews(duckdb_views(folders), 1) as judge:
            assert compare(judge, table) == (right.num_rows, wrong)


def test_the_plot_shows_units_load_and_latency(tmp_path: Path) -> None:
    run = ElasticRun([batch(at, 1 + at // 3) for at in range(8)], fed=[Fed(0.0, 10_000)])
    figures = figures_of(run, PROFILE, elastic.QUICK)
    for name in ("one.svg", "other.svg"):
        write_plot(figures, tmp_path / name)
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "other.svg").read_text()
    for label in ("units", "memory load", "input rows a second", "2 changes of units, 0 stored rows moved"):
        assert label in text


@pytest.mark.slow
@pytest.mark.spark
def test_the_suite_moves_no_row_and_finds_no_wrong_answer(spark: SparkSession, tmp_path: Path) -> None:
    steps = Steps(Console(file=StringIO()))
    figures: dict[str, Any] = elastic.run(Workbench(spark, tmp_path, BenchOptions(quick=True, cores=2), steps))
    assert figures["results_wrong"] == 0
    assert figures["state_rows_moved"] == 0
    assert figures["results"] > 1000
    assert figures["rows"] == 2 * sum(RateProfile(elastic.ROWS_PER_S, elastic.QUICK.phases, 1).rows_by_second())
    assert {"changes", "flicker_changes", "long_batches_per_change", "series"} <= set(figures)
    assert len(figure_rows({**figures, "suite": "elastic"})) == 5
