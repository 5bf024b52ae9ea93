"""CAST of odd texts to every type: what Spark answers, or a failure where Spark fails."""

from __future__ import annotations

import math
import re
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dovetail.core.errors import EvaluationError
from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.query.expression import Call, Column
from dovetail.query.types import STRING, parse_column_type
from tests.support.generators.odd_texts import SEEDS, odd_text
from tests.support.keep_failures import first_seed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NUMBERS = ("boolean", "tinyint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,0)", "decimal(38,38)")
TIMES = ("date", "timestamp", "timestamp_ntz")
"""These are compared as the texts that they print."""
_FAR_YEAR = re.compile(r"[+-]?\d{5,7}(?:-.*)?", re.ASCII | re.DOTALL)
_ONLY_TIME = re.compile(r"T\d|\d{1,2}:", re.ASCII)
_ZONE_OF_JAVA = "SystemV/"


def is_left_out(text: str, target: str) -> bool:
    """What Spark reads and Dovetail says it does not: a time of today, years beyond 32767, zones of Java alone."""
    bare = text.strip("".join(map(chr, range(0x21))) + "\x7f")
    is_far = bool(_FAR_YEAR.fullmatch(bare)) and abs(int(re.match(r"[+-]?\d+", bare)[0])) > 32_767  # type: ignore[index]
    return target in TIMES and (is_far or bool(_ONLY_TIME.match(bare)) or _ZONE_OF_JAVA in bare)


def ours(text: str, target: str, timezone: str) -> Any:
    """The cast's value, None where it fails."""
    kind = parse_column_type(target)
    expression = Call("cast", (Column("a", "s", STRING),), kind)
    if target in TIMES:
        expression = Call("cast", (expression,), STRING)
    column = pa.array([text])
    try:
        return evaluate(expression, lambda _: column, 1, timezone=timezone)[0].as_py()
    except EvaluationError:
        return None


def is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one.hex() == other.hex() or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def check_casts(spark: SparkSession, texts: list[str], timezone: str) -> None:
    casts = [f"try_cast(s AS {target})" for target in NUMBERS] + [f"try_cast(s AS {t})::STRING" for t in TIMES]
    spark.conf.set("spark.sql.session.timeZone", timezone)
    try:
        rows = spark.createDataFrame([(text,) for text in texts], "s string").selectExpr("s", *casts).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    wrong = [
        f"CAST({row[0]!r} AS {target}): Spark {row[place + 1]!r}, here {found!r}"
        for row in rows
        for place, target in enumerate((*NUMBERS, *TIMES))
        if not is_left_out(row[0], target) and not is_same(found := ours(row[0], target, timezone), row[place + 1])
    ]
    assert not wrong, "\n".join(wrong[:30])


@pytest.mark.parametrize("timezone", ["UTC", "Europe/Berlin"])
def test_odd_texts_are_cast_as_by_spark(spark: SparkSession, timezone: str) -> None:
    rng = Random(first_seed())
    check_casts(spark, [*SEEDS, *(odd_text(rng) for _ in range(150))], timezone)


@pytest.mark.slow
@pytest.mark.parametrize("timezone", ["UTC", "America/New_York"])
def test_thousands_of_odd_texts_are_cast_as_by_spark(spark: SparkSession, timezone: str) -> None:
    rng = Random(first_seed() + 1)
    check_casts(spark, [odd_text(rng) for _ in range(5000)], timezone)
