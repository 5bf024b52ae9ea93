from __future__ import annotations

import pytest

from dovetail.runtime.source import ship_rows


@pytest.fixture(autouse=True)
def few_rows_are_narrowed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random cases have few rows, and what is done to many shall be tried on them."""
    monkeypatch.setattr(ship_rows, "NARROWED_FROM", 1)
