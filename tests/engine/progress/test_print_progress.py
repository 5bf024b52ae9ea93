"""What users see of a batch: its keys stay, and it can be written as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from dovetail.engine.progress.figures import BatchFigures, Durations
from dovetail.engine.progress.print_progress import print_progress

if TYPE_CHECKING:
    from conftest import Bench

KEYS = {
    "batchId",
    "timestamp",
    "numInputRows",
    "processedRowsPerSecond",
    "batchDuration",
    "durationMs",
    "taskSeconds",
    "streams",
    "queries",
    "stores",
    "groups",
    "hops",
    "work",
    "shipped",
    "statistics",
    "written",
}
JOIN = "SELECT a.k, b.v FROM a JOIN b ON a.k = b.k"


def test_figures_of_a_batch_are_printed(bench: Bench) -> None:
    session = bench.open()
    session.create_query(JOIN, "q")
    session.create_query("SELECT a.k, count(*) AS n FROM a GROUP BY a.k, window(a.ts, '1 second')", "groups")
    bench.push(session, a=[(1, 1, 0), (2, 1, 0)], b=[(1, 5, 0)])
    bench.push(session, a=[(1, 2, 3)], b=[(2, 6, 3)])
    progress, figures = session.progress, session.engine.head.figures
    assert progress is not None
    assert figures is not None
    assert progress.keys() >= KEYS
    assert json.loads(json.dumps(progress)) == progress
    assert (progress["batchId"], progress["numInputRows"]) == (1, 2) == (figures.batch, figures.input_rows)
    by_name = {query["name"]: (query["numOutputRows"], query["totalOutputRows"]) for query in progress["queries"]}
    assert by_name["q"] == (2, 3)
    assert [(hop["hop"], hop["probeRows"], hop["matchedRows"]) for hop in progress["hops"]] == [(1, 1, 1)] * 2
    assert progress["durationMs"].keys() == {"plan", "run", "commit"}
    assert sum(progress["durationMs"].values()) == pytest.approx(progress["batchDuration"])


def test_a_batch_of_which_nothing_is_known_can_be_printed() -> None:
    """As when taking its figures failed."""
    progress = print_progress(BatchFigures(7, 0.0, Durations(0.0, 0.0, 0.0)))
    assert progress.keys() >= KEYS
    assert progress["work"] == {"partitions": [], "slowestOverMean": 1.0}
