"""No text compiles that Spark's own parser refuses: damaged texts, and what becomes of them in both."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from dovetail.core.errors import SqlError
from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.stream import Stream
from dovetail.query.types import BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, SqlType
from tests.support.generators.damaged_texts import TEXTS, damaged_text
from tests.support.keep_failures import first_seed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = (
    *(("k", INT), ("x", INT), ("d", DOUBLE), ("s", STRING), ("price", SqlType("decimal", 10, 2)), ("ok", BOOLEAN)),
    *(("dt", DATE), ("ts", TIMESTAMP)),
)
STREAMS = {name: Stream(name, COLUMNS, "ts") for name in ("a", "b", "c")}


def compiles(text: str) -> bool:
    try:
        compile_sql(text, STREAMS)
    except SqlError as error:
        if "defect" in error.what:
            raise
        return False
    return True


def spark_refuses(spark: SparkSession, text: str) -> str | None:
    """What Spark's parser says to a text that it does not read."""
    try:
        spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except Exception as error:  # noqa: BLE001 - whatever it is, the text is refused
        return str(error)
    return None


def check_texts(spark: SparkSession, rng: Random, count: int) -> None:
    wrong = []
    for _ in range(count):
        text = damaged_text(rng)
        if compiles(text) and (why := spark_refuses(spark, text)):
            wrong.append(f"{text!r}: {why[:300]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", TEXTS)
def test_whole_texts_are_read_by_both(spark: SparkSession, text: str) -> None:
    assert compiles(text)
    assert spark_refuses(spark, text) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.r'x' k FROM a",
        "SELECT a.k AS r'x' FROM a",
        "SELECT a.k FROM a JOIN b USING (r'k')",
        "SELECT a.k AS 1e400 FROM a",
        "SELECT a.x FROM a JOIN b ON a.1e5BD = b.k",
        "SELECT 1e5.5 AS v FROM a",
        "SELECT a.5 AS v FROM a",
    ],
)
def test_texts_that_were_read_before_are_refused_by_both(spark: SparkSession, text: str) -> None:
    assert spark_refuses(spark, text) is not None
    assert not compiles(text)


def test_what_spark_refuses_does_not_compile(spark: SparkSession) -> None:
    check_texts(spark, Random(first_seed()), 300)


@pytest.mark.slow
def test_what_spark_refuses_does_not_compile_among_thousands(spark: SparkSession) -> None:
    check_texts(spark, Random(first_seed() + 1), 10_000)
