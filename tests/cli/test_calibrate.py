from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dovetail.cli.calibrate import TEXT_BY_UNIT, time_text
from dovetail.cli.main import app
from dovetail.engine.calibrate import calibrate as engine_calibrate
from dovetail.engine.calibrate.shapes import CHECKS, SHAPES
from dovetail.engine.calibrate.unit_cost_cache import load_unit_costs, unit_cost_file
from dovetail.stats.unit_costs import DEFAULT_UNIT_COSTS, UnitCosts


@pytest.fixture(autouse=True)
def small_shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    small = functools.partial(
        engine_calibrate.calibrate,
        shapes=[shape.scaled(0.01) for shape in SHAPES],
        checks=[shape.scaled(0.01) for shape in CHECKS],
    )
    monkeypatch.setattr(engine_calibrate, "calibrate", small)


def test_it_measures_shows_and_keeps_unit_costs(tmp_path: Path) -> None:
    figures_file = tmp_path / "new" / "figures.json"
    answer = CliRunner().invoke(app, ["calibrate", "--seconds", "1", "--json", str(figures_file)])
    assert answer.exit_code == 0, answer.output
    figures = json.loads(figures_file.read_text())
    assert load_unit_costs() == UnitCosts.from_json(figures["unit_costs"]) != DEFAULT_UNIT_COSTS
    names = [*DEFAULT_UNIT_COSTS.to_json(), *(shape.name for shape in (*SHAPES, *CHECKS)), unit_cost_file().name]
    assert [name for name in names if name not in answer.output] == []
    assert "which the fit did not see" in " ".join(answer.output.split())
    assert [entry["shape"] for entry in figures["checks"]] == [shape.name for shape in CHECKS]


def test_a_file_that_cannot_be_written_ends_it_before_the_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_calibrate, "calibrate", lambda *_given, **_named: pytest.fail("it measured"))
    (tmp_path / "file").write_text("")
    answer = CliRunner().invoke(app, ["calibrate", "--json", str(tmp_path / "file" / "figures.json")])
    assert answer.exit_code == 1
    assert "cannot be written" in answer.output


def test_every_unit_has_a_text() -> None:
    assert list(TEXT_BY_UNIT) == list(DEFAULT_UNIT_COSTS.to_json())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0"), (9.96e-9, "9.96 ns"), (1e-6, "1 us"), (0.9994, "999 ms"), (12.0, "12 s")],
)
def test_times_are_short_texts(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
