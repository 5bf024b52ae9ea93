"""Fixtures and settings for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Time limits per example fail on a busy machine and find no bugs.
settings.register_profile("dovetail", deadline=None, print_blob=True)
settings.load_profile("dovetail")


# First, because xdist reads the groups in its own hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All Spark tests go to one worker: a second JVM costs more than it gains on two cores."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session for all tests of a worker."""
    from dovetail.runtime.spark.local_session import local_spark  # noqa: PLC0415 - unit tests never load Spark

    session = local_spark("dovetail-tests")
    yield session
    session.stop()
