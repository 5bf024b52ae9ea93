"""The suite `hostile` can fail: a tampered neighbour, a lost batch, an error without a remedy are counted as such."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from benchmarks.hostile.acts import ACTS
from benchmarks.hostile.arena import Arena, BatchTime, Hang, within
from benchmarks.hostile.calls import argument_sets, lost_calls
from benchmarks.hostile.corpus import QUERIES
from benchmarks.hostile.corpus.files import FILES
from benchmarks.hostile.corpus.requests import REQUESTS
from benchmarks.hostile.judge import answers_of, difference, of_refusal, with_good_keys
from benchmarks.hostile.query_waves import QueryWaves
from benchmarks.hostile.records import Outcome, Tried, of
from benchmarks.hostile.world import GOOD_QUERIES, rows
from benchmarks.report.plots import write_plot
from benchmarks.report.table import figure_rows
from benchmarks.suites.hostile import figures_of, slowest_over_usual
from dovetail.core.errors import QueryError, SqlError
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tried(outcome: Outcome, what: str = "x") -> Tried:
    return Tried("some mechanism", what, "session on Spark", outcome)


def test_the_corpus_is_as_large_and_as_different_as_it_says() -> None:
    mechanisms = {one.mechanism for part in (QUERIES, ACTS, FILES, REQUESTS) for one in part}  # type: ignore[attr-defined]
    assert len(QUERIES) + len(ACTS) + len(FILES) + len(REQUESTS) >= 1_000
    assert len(mechanisms) >= 40
    assert len({query.sql for query in QUERIES}) == len(QUERIES)
    assert len(GOOD_QUERIES) == 10


def test_a_text_that_is_tried_twice_counts_once_and_every_miss_counts() -> None:
    figures = figures_of([tried(Outcome.REFUSED), tried(Outcome.WRONG), tried(Outcome.HIT_NEIGHBOUR, "y")])
    assert figures["tried"] == 2
    assert figures["culprits_missed"] == 2
    assert figures_of([tried(Outcome.POOR_ERROR)])["culprits_missed"] == 1
    assert figures_of([tried(Outcome.STOPPED), tried(Outcome.ANSWERED)])["culprits_missed"] == 0


def test_a_tampered_answer_is_a_difference() -> None:
    table = rows("a", 1, 20)
    right = answers_of(table)
    assert difference(answers_of(table), right) == ""
    assert "1 rows missing, 0 too many" in difference(answers_of(table.slice(1)), right)
    changed = table.set_column(1, "v", pa.array([99] * 20, pa.int32()))
    assert "20 rows missing, 20 too many" in difference(answers_of(changed), right)


def test_only_keys_below_zero_are_left_out() -> None:
    assert with_good_keys(Counter({("-5", "x"): 1, ("5", "-1"): 2}), [0]) == Counter({("5", "-1"): 2})


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (TypeError("raw"), Outcome.POOR_ERROR),
        (QueryError("without a remedy"), Outcome.POOR_ERROR),
        (SqlError("without a place", hint="do this"), Outcome.POOR_ERROR),
        (SqlError("as it should be", where="line 1, column 1", hint="do this"), Outcome.REFUSED),
    ],
)
def test_a_refusal_must_say_what_to_do(error: Exception, outcome: Outcome) -> None:
    assert of_refusal(error)[0] is outcome


def test_what_never_ends_is_a_hang() -> None:
    with pytest.raises(Hang):
        within(0.01, Event().wait)


def test_the_slowest_batch_is_held_against_those_without_anything_hostile() -> None:
    quiet = [BatchTime(wave, 100.0, 30) for wave in range(1, 6)]
    found = slowest_over_usual([*quiet, BatchTime(6, 250.0, 30), BatchTime(7, 900.0, 30)], 5, 30)
    assert found["slowest_batch_over_usual"] == 9.0


def test_a_batch_that_is_lost_is_charged_to_its_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = argument_sets("upper", 6)
    assert lost_calls(tmp_path / "right", calls) == []

    def lose(*_args: Any) -> None:
        raise RuntimeError("lost")

    monkeypatch.setattr(LocalSession, "push", lose)
    assert lost_calls(tmp_path / "lost", calls)


def test_figures_become_rows_and_a_plot(tmp_path: Path) -> None:
    figures = {
        "suite": "hostile",
        **figures_of([tried(Outcome.REFUSED), tried(Outcome.WRONG, "y")]),
        "batches_lost": 0,
        "neighbours_wrong": 1,
        "hangs": 0,
        "http_5xx": 0,
        "slowest_batch_over_usual": 2.5,
        "functions": {"functions": 79, "tried": 7_900, "batches_lost": 0},
        "on_spark": {"usual_batch_ms": 300.0, "slowest_batch_ms": 750.0},
    }
    assert any(row.value == "0; 1" for row in figure_rows(figures))
    assert write_plot(figures, tmp_path / "hostile.svg")


@pytest.mark.slow
@pytest.mark.spark
def test_a_neighbour_that_misses_rows_and_a_batch_that_is_lost_are_noticed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arena = Arena(spark, tmp_path, 60)
    try:
        assert arena.run_wave()
        waves = QueryWaves(arena, 4, lambda _: None)
        found = waves.run(of("some", "SELECT 1 / v AS x FROM a", "SELECT nothing FROM a", "SELECT k FROM a"))
        assert [one.outcome for one in found] == [Outcome.REFUSED, Outcome.STOPPED, Outcome.ANSWERED]
        assert arena.wrong_neighbours() == {}
        arena.folders.good["a"].append(arena.folders.put("unseen", arena.folders.good["a"][0].read_bytes()))
        assert {"pairs", "groups", "single"} <= arena.wrong_neighbours().keys()
        lost = arena.batches_lost
        arena.session.stop()

        def lose(*_args: Any, **_options: Any) -> None:
            raise OSError("no disk")

        monkeypatch.setattr(type(arena.session.engine.batches), "run", lose)
        arena.session = arena._open()
        arena.session.start()
        monkeypatch.setattr(arena, "restart", lambda: None)
        assert not arena.run_wave()
        assert arena.batches_lost == lost + 1
    finally:
        arena.close()
