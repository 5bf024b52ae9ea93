"""Benchmarks are measured by `make bench` and tested by `make test-all`; `make test` has only their plain parts."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
QUICK = (
    "test_chain_data.py",
    "test_faults.py",
    "test_hostile.py",
    "test_measure.py",
    "test_verify.py",
    "test_workloads.py",
)
"""What data, measures and checks are made of: in a second or two."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.name not in QUICK:
            item.add_marker(pytest.mark.slow)
