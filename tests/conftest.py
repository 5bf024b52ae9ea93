"""Fixtures and settings for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Time limits per example fail on a busy machine and find no bugs. Examples are others with every run.
settings.register_profile("dovetail", deadline=None, print_blob=True, max_examples=50)
# `make test-all` takes this one.
settings.register_profile("many", settings.get_profile("dovetail"), max_examples=200)
# `make mutants` takes this one: it asks whether a test fails, not for the smallest case in which it does.
settings.register_profile("first", settings.get_profile("dovetail"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("dovetail")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session for all tests of a worker."""
    from dovetail.runtime.spark.local_session import local_spark  # noqa: PLC0415 - unit tests never load Spark

    # Tests run most of Spark's code a few times: compiling it thoroughly takes longer than running it as it is.
    session = local_spark("dovetail-tests", spark__driver__extraJavaOptions="-XX:TieredStopAtLevel=1")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _no_stream_outlives_its_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """A session that a failing test leaves running would fail all tests after it, too."""
    yield
    if "spark" in request.fixturenames:
        for streaming in request.getfixturevalue("spark").streams.active:
            streaming.stop()
