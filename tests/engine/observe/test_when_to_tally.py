"""Figures are tallied of every batch of a few queries, and of some batches of hundreds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dovetail.engine.observe import when_to_tally
from dovetail.engine.observe.when_to_tally import FEWEST, FIGURES_A_BATCH, LEARNING_BATCHES, is_tallied
from dovetail.engine.planning import planner
from dovetail.optimizer.passes.choose_routing import choose_routings
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.observed import ObservedStats
from dovetail.testing.local_session import LocalSession
from tests.support.neighbours import SCHEMA, rows


def observed(figures: int, tallied: int = LEARNING_BATCHES) -> ObservedStats:
    tallies = {Figure(Kind.BATCH_ROWS, (f"s{number}",)): Tally(1.0, 1.0) for number in range(figures)}
    return ObservedStats(tallies, tallied=tallied)


def share_of_batches(figures: int, tallied: int = LEARNING_BATCHES) -> float:
    known = observed(figures, tallied)
    return sum(is_tallied(known, batch) for batch in range(840)) / 840


def test_the_more_figures_there_are_the_fewer_batches_are_asked() -> None:
    assert share_of_batches(FIGURES_A_BATCH - 1) == 1
    assert share_of_batches(FIGURES_A_BATCH) == 1 / 2
    assert share_of_batches(3 * FIGURES_A_BATCH) == 1 / 4
    assert share_of_batches(100 * FIGURES_A_BATCH) == 1 / FEWEST


def test_what_is_new_is_learned_at_once() -> None:
    assert share_of_batches(100 * FIGURES_A_BATCH, LEARNING_BATCHES - 1) == 1


def test_between_two_that_are_asked_planners_see_the_same_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(when_to_tally, "FIGURES_A_BATCH", 1)
    monkeypatch.setattr(when_to_tally, "LEARNING_BATCHES", 2)
    routed: list[object] = []

    def counted(*given: Any) -> Any:
        routed.append(given)
        return choose_routings(*given)

    monkeypatch.setattr(planner, "choose_routings", counted)
    with LocalSession(tmp_path, partitions=1) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA)
        session.create_query("SELECT a.k, b.v FROM a JOIN b ON a.k = b.k", "pairs")
        seen: list[StatsCatalog] = []
        for _ in range(2 * FEWEST):
            session.push({"a": rows(*range(6)), "b": rows(*range(6))})
            seen.append(session.engine.head.statistics)
        assert len({id(each) for each in seen}) == 3
        # For the first plan, after each that was asked, and for the new plans that came of the first two.
        assert len(routed) < 8 < 2 * FEWEST
        assert session.results("pairs").num_rows == 4 * (2 * FEWEST) ** 2 * 3
