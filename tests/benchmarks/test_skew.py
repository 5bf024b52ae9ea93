"""The suite `skew` in its smallest form, and the data it runs on."""

from __future__ import annotations

from collections import Counter
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from benchmarks.measure import Steps
from benchmarks.options import BenchOptions
from benchmarks.report.table import figure_rows
from benchmarks.suites import skew
from benchmarks.suites.skew import KEYS, SkewedRows


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skew, "EXPONENTS", (0.0, 1.2))
        return skew.run(BenchOptions(quick=True, cores=1, rows=24_000), Steps(Console(file=StringIO())))


def test_every_routing_has_the_right_answer(figures: dict[str, Any]) -> None:
    assert figures["results_equal"]
    assert figures["results"]["1.2"] > 0


def test_splitting_hot_keys_keeps_all_units_busy(figures: dict[str, Any]) -> None:
    """The session finds the keys by itself; hash leaves most units idle."""
    imbalance = figures["imbalance"]["1.2"]
    assert imbalance["split"] <= 1.15 < imbalance["contrand"] < imbalance["hash"]
    assert figures["split_keys"] == {"0": 0, "1.2": figures["split_keys"]["1.2"]}
    assert figures["split_keys"]["1.2"] > 3


def test_the_figures_have_a_line_for_every_exponent_and_routing(figures: dict[str, Any]) -> None:
    assert len(figure_rows({**figures, "suite": "skew"})) == 1 + 2 * 3 + 1


@pytest.mark.parametrize(("exponent", "first_share"), [(0.0, 1 / KEYS), (1.2, 0.184), (2.0, 0.608)])
def test_keys_are_as_frequent_as_their_exponent_says(exponent: float, first_share: float) -> None:
    (batch,) = SkewedRows(exponent, 50_000, 1, seed=3).batches()
    counts = Counter(batch["a"]["k"].to_pylist())
    assert counts[0] / 50_000 == pytest.approx(first_share, abs=0.02)
