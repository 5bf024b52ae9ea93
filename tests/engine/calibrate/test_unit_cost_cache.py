from __future__ import annotations

import json
import logging
import os
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dovetail.core.errors import StoreError
from dovetail.engine.calibrate.unit_cost_cache import load_unit_costs, save_unit_costs, unit_cost_file
from dovetail.stats.unit_costs import DEFAULT_UNIT_COSTS

MEASURED = replace(DEFAULT_UNIT_COSTS, probed=7.5e-8)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "dovetail" / "unit_costs.json"


def test_without_a_file_the_defaults_hold_silently(caplog: pytest.LogCaptureFixture) -> None:
    assert load_unit_costs() == DEFAULT_UNIT_COSTS
    assert caplog.records == []


def test_what_was_saved_is_loaded(cache: Path) -> None:
    assert save_unit_costs(MEASURED, clock=lambda: 0.0) == cache
    assert load_unit_costs() == MEASURED
    record = json.loads(cache.read_text())
    assert record["measured_at"] == "1970-01-01T00:00:00+00:00"
    assert (record["python"], record["cpu_count"]) == (platform.python_version(), os.cpu_count())
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]


@pytest.mark.parametrize(("name", "value"), [("version", "0.0.0"), ("machine", "elsewhere"), ("cpu_count", -1)])
def test_costs_of_another_version_or_machine_are_not_used(
    cache: Path, name: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    save_unit_costs(MEASURED)
    cache.write_text(json.dumps({**json.loads(cache.read_text()), name: value}))
    assert load_unit_costs() == DEFAULT_UNIT_COSTS
    assert caplog.records == []


def damaged_records() -> list[bytes]:
    return [
        b"",
        b"{",
        b"[]",
        b"7",
        b"null",
        b'{"version": "0.1.0"}',
        b"\xff\xfe",
        b"[" * 100_000,
    ]


@pytest.mark.parametrize("content", damaged_records(), ids=range(8))
def test_a_damaged_file_is_ignored_with_a_warning(
    cache: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    cache.parent.mkdir()
    cache.write_bytes(content)
    with caplog.at_level(logging.WARNING, logger="dovetail"):
        assert load_unit_costs() == DEFAULT_UNIT_COSTS
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(cache) in caplog.text


@pytest.mark.parametrize("units", [{}, [], None, {**MEASURED.to_json(), "probed": -1.0}, {"probed": 1.0}])
def test_damaged_units_are_ignored_with_a_warning(cache: Path, units: Any, caplog: pytest.LogCaptureFixture) -> None:
    save_unit_costs(MEASURED)
    cache.write_text(json.dumps({**json.loads(cache.read_text()), "unit_costs": units}))
    with caplog.at_level(logging.WARNING, logger="dovetail"):
        assert load_unit_costs() == DEFAULT_UNIT_COSTS
    assert len(caplog.records) == 1


def test_a_failed_write_leaves_the_old_costs_and_no_draft(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_unit_costs(MEASURED)

    def refuse(_self: Path, _target: Path) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(StoreError, match="no space left"):
        save_unit_costs(DEFAULT_UNIT_COSTS)
    assert load_unit_costs() == MEASURED
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]


def test_a_folder_that_cannot_be_made_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "dovetail").write_text("a file")
    with pytest.raises(StoreError) as caught:
        save_unit_costs(MEASURED)
    assert "XDG_CACHE_HOME" in (caught.value.hint or "")


@pytest.mark.parametrize("given", [None, "", "relative"])
def test_without_an_absolute_xdg_folder_it_is_below_home(
    given: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    if given is None:
        monkeypatch.delenv("XDG_CACHE_HOME")
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert unit_cost_file() == tmp_path / ".cache" / "dovetail" / "unit_costs.json"
