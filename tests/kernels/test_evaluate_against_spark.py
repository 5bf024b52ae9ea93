"""Every supported expression, on random rows, gives what Spark's batch SQL gives: types, values, bit by bit."""

from __future__ import annotations

import datetime
import math
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from dovetail.core.errors import EvaluationError
from dovetail.frontend.compile_sql import compile_sql
from dovetail.kernels.arrow_types import sql_type_of
from dovetail.kernels.evaluate.evaluate import evaluate, evaluate_mask
from dovetail.query.expression import Expression
from dovetail.query.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 400
NUMBERS = pa.schema(
    [
        ("id", pa.int32()),
        ("ti", pa.int8()),
        ("sm", pa.int16()),
        ("i", pa.int32()),
        ("j", pa.int32()),
        ("big", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("e", pa.float64()),
        ("g", pa.float64()),
        ("h", pa.float32()),
        ("bo", pa.bool_()),
    ]
)
DECIMALS = pa.schema(
    [
        ("id", pa.int32()),
        ("i", pa.int32()),
        ("big", pa.int64()),
        ("d", pa.float64()),
        ("p5", pa.decimal128(5, 2)),
        ("p10", pa.decimal128(10, 3)),
        ("p18", pa.decimal128(18, 6)),
        ("p30", pa.decimal128(30, 10)),
        ("p38", pa.decimal128(38, 18)),
        ("whole", pa.decimal128(20, 0)),
    ]
)
STRINGS = pa.schema(
    [
        ("id", pa.int32()),
        ("s", pa.string()),
        ("t", pa.string()),
        ("n", pa.int32()),
        ("num", pa.string()),
        ("when_text", pa.string()),
    ]
)
TIMES = pa.schema(
    [
        ("id", pa.int32()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("us", pa.timestamp("us", tz="UTC")),
        ("ntz", pa.timestamp("us")),
        ("dt", pa.date32()),
        ("du", pa.date32()),
        ("n", pa.int32()),
        ("big", pa.int64()),
    ]
)


CHANGED_CLOCKS = (
    *("2025-10-26T01:00", "2026-03-29T01:00", "2045-10-29T01:00", "2045-03-26T01:00"),  # Europe/Berlin
    *("2025-11-02T05:00", "2026-03-08T05:00"),  # America/Havana, at midnight
    *("2026-04-04T15:00", "2025-10-04T15:30"),  # Australia/Lord_Howe, by half an hour
    *("2011-12-30T10:00", "2012-03-31T14:00"),  # Pacific/Apia, by a day and by an hour
)
"""Instants at which the clocks of some zone were changed."""


def expressions(family: str) -> list[str]:
    """The lines of a file beside this one; a new case needs no Python."""
    lines = (Path(__file__).parent / "expressions" / f"{family}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line]


def number_rows(rng: random.Random) -> list[dict[str, object]]:
    doubles = [
        0.0,
        -0.0,
        math.nan,
        math.inf,
        -math.inf,
        1.5,
        -2.5,
        0.1,
        2.5,
        1e300,
        5e-324,
        0.49999999999999994,
        123456.785,
    ]

    def double() -> float:
        return rng.choice([*doubles, rng.uniform(-1000, 1000), rng.gauss(0, 1), float(rng.randint(-5, 5))])

    return [
        {
            "ti": rng.choice([-60, 60, rng.randint(-60, 60)]),
            "sm": rng.randint(-3000, 3000),
            "i": rng.choice([0, 1, 2, 3, 5, -1, rng.randint(-30000, 30000), rng.randint(-9, 9)]),
            "j": rng.choice([0, 1, 2, -1, -2, rng.randint(-30000, 30000), rng.randint(-9, 9)]),
            "big": rng.choice([0, 1, 3_000_000_000, rng.randint(-(2**60), 2**60), 2**53 + 1]),
            "f": _single(double()),
            "d": double(),
            "e": double(),
            "g": rng.choice([0.0, -0.0, 2.5, -2.5, 0.1, 99.99, rng.uniform(-99, 99)]),
            "h": _single(rng.choice([0.0, -0.0, 2.5, -2.5, 0.1, 99.99, rng.uniform(-99, 99)])),
            "bo": rng.random() < 0.5,
        }
        for _ in range(ROWS)
    ]


def _single(value: float) -> float:
    if abs(value) > 3e38 and math.isfinite(value):
        return 3.0e38
    return struct.unpack("f", struct.pack("f", value))[0]


def decimal_rows(rng: random.Random) -> list[dict[str, object]]:
    def number(precision: int, scale: int) -> Decimal:
        digits = rng.choice([1, 2, precision // 2, precision])
        unscaled = rng.choice([0, 1, -1, 5 * 10 ** max(digits - 1, 0), rng.randint(-(10**digits) + 1, 10**digits - 1)])
        unscaled = max(min(unscaled, 10**precision - 1), 1 - 10**precision)
        sign = 1 if unscaled < 0 else 0
        return Decimal((sign, tuple(map(int, str(abs(unscaled)))), -scale))

    return [
        {
            "i": rng.randint(-99, 99),
            "big": rng.randint(-(10**9), 10**9),
            "d": rng.uniform(-100, 100),
            "p5": number(5, 2),
            "p10": number(10, 3),
            "p18": number(12, 6),
            "p30": number(20, 10),
            "p38": number(24, 18),
            "whole": number(15, 0),
        }
        for _ in range(ROWS)
    ]


def string_rows(rng: random.Random) -> list[dict[str, object]]:
    alphabet = "aabbc  AB%_.\\äßÉ😀中\n1'/"

    def text() -> str:
        return "".join(rng.choice(alphabet) for _ in range(rng.choice([0, 1, 1, 2, 3, 5, 8])))

    numbers = ["0", "1", " 12 ", "-7", "+5", "99", "\t3\n", "007", "-0"]
    times = [
        "2024-02-29",
        "2024-1-2",
        "1999",
        "2001-02",
        " 2020-03-04 ",
        "2024-01-02 03:04:05",
        "2024-01-02T03:04:05.1234567",
    ]
    times += [
        "1960-12-31 23:59:59.999999",
        "2024-01-02 03:04",
        "2024-01-02 03:04:05Z",
        "2024-01-02 03:04:05 ",
        "2024-01-02 3",
    ]
    return [
        {"s": text(), "t": rng.choice(["a", "", "ab", text()]), "n": rng.randint(-3, 7)}
        | {"num": rng.choice(numbers), "when_text": rng.choice(times)}
        for _ in range(ROWS)
    ]


def time_rows(rng: random.Random) -> list[dict[str, object]]:
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    days = [
        datetime.date(2000, 1, 1),
        datetime.date(2001, 1, 1),
        datetime.date(1969, 12, 31),
        datetime.date(2024, 2, 29),
    ]

    def moment() -> datetime.datetime:
        micros = rng.choice(
            [0, -1, 1, 946684800000000, rng.randint(-(3 * 10**15), 3 * 10**15), rng.randint(-(10**9), 10**9)]
        )
        return epoch + datetime.timedelta(microseconds=micros)

    def near_a_change() -> datetime.datetime:
        change = datetime.datetime.fromisoformat(rng.choice(CHANGED_CLOCKS)).replace(tzinfo=datetime.UTC)
        days = rng.choice([0, 0, 1, -1, 2, 7])
        return change + datetime.timedelta(days=days, minutes=15 * rng.randint(-9, 9), microseconds=rng.randint(-1, 1))

    def pair() -> dict[str, object]:
        """Two times, of which many lie on two sides of a change, an hour or a day apart."""
        first = rng.choice([moment, near_a_change, near_a_change])()
        minutes = rng.choice([0, 45, 60, 90, 120, 24 * 60, 25 * 60, 48 * 60])
        second = first + rng.choice([-1, 1]) * datetime.timedelta(minutes=minutes, microseconds=rng.randint(-1, 1))
        return {"ts": first, "us": rng.choice([moment(), near_a_change(), second, second])}

    def listed(value: datetime.datetime) -> datetime.datetime:
        # PySpark itself reads times without a zone wrongly after 2037, where zone files end.
        return value if value.year < 2037 else value.replace(year=2020, day=1)

    def day() -> datetime.date:
        return rng.choice([*days, datetime.date(1970, 1, 1) + datetime.timedelta(days=rng.randint(-30000, 30000))])

    return [
        {
            **pair(),
            "ntz": listed(moment()).replace(tzinfo=None),
            "dt": day(),
            "du": day(),
            "n": rng.randint(-40, 40),
        }
        | {"big": rng.randint(-(10**12), 10**12)}
        for _ in range(ROWS)
    ]


def table_of(schema: pa.Schema, rows: list[dict[str, object]], rng: random.Random) -> pa.Table:
    """The rows with ids, and a NULL here and there."""
    filled = [
        {name: None if name != "id" and rng.random() < 0.12 else value for name, value in {**row, "id": number}.items()}
        for number, row in enumerate(rows)
    ]
    return pa.Table.from_pylist(filled, schema=schema)


FAMILIES = {
    "numbers": (NUMBERS, number_rows),
    "decimals": (DECIMALS, decimal_rows),
    "strings": (STRINGS, string_rows),
    "times": (TIMES, time_rows),
}


def bits(value: object) -> object:
    """A value in a form where NaN equals itself, -0.0 differs from 0.0, and instants are what they are in UTC."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("d", value)
    return value


def outputs(table: pa.Table, items: list[str], timezone: str) -> list[tuple[str, Expression]]:
    columns = tuple((field.name, sql_type_of(field.type)) for field in table.schema)
    select = ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))
    text = f"SELECT {select} FROM t JOIN (SELECT id AS u_id FROM t) u ON t.id = u.u_id"
    query = compile_sql(text, {"t": Stream("t", columns)}, timezone=timezone)
    return [(column.name, column.expression) for column in query.output]


def view_of(spark: SparkSession, table: pa.Table) -> None:
    """The table as view `t`; Spark would read Arrow's times without a zone as times with one."""
    columns = [
        f"CAST({field.name} AS TIMESTAMP_NTZ) AS {field.name}" if field.type == pa.timestamp("us") else field.name
        for field in table.schema
    ]
    spark.createDataFrame(table).selectExpr(*columns).createOrReplaceTempView("t")


def differences(spark: SparkSession, family: str, timezone: str) -> list[str]:
    schema, make_rows = FAMILIES[family]
    rng = random.Random(family)
    table = table_of(schema, make_rows(rng), rng)
    items = expressions(family)
    view_of(spark, table)
    select = ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))
    expected = spark.sql(f"SELECT {select} FROM t ORDER BY id").toArrow()
    problems = []
    for (name, expression), item in zip(outputs(table, items, timezone), items, strict=True):
        problems += [f"{item}: {what}" for what in problems_of(expression, table, expected[name], timezone)]
    return problems


def problems_of(expression: Expression, table: pa.Table, expected: pa.ChunkedArray, timezone: str) -> list[str]:
    actual = evaluate(expression, lambda column: table[column.name], len(table), timezone=timezone)
    problems = []
    if timezone == "UTC" and expected.type != actual.type:
        problems.append(f"type {actual.type}, Spark {expected.type}")
    pairs = zip(actual.to_pylist(), expected.to_pylist(), strict=True)
    wrong = [(row, a, b) for row, (a, b) in enumerate(pairs) if bits(a) != bits(b)]
    if wrong:
        row, a, b = wrong[0]
        problems.append(f"{len(wrong)} rows differ, first {a!r}, Spark {b!r} for {table.slice(row, 1).to_pylist()[0]}")
    if actual.type == pa.bool_():
        mask = evaluate_mask(expression, lambda column: table[column.name], len(table), timezone=timezone)
        if mask.tolist() != [value is True for value in expected.to_pylist()]:
            problems.append("mask differs")
    return problems


@pytest.mark.parametrize("family", FAMILIES)
def test_expressions_equal_spark(spark, family):
    assert not differences(spark, family, "UTC")


@pytest.mark.parametrize("timezone", ["Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Pacific/Apia"])
def test_times_equal_spark_in_a_zone_with_summer_time(spark, timezone):
    spark.conf.set("spark.sql.session.timeZone", timezone)
    try:
        assert not differences(spark, "times", timezone)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_what_fails_in_spark_fails_here(spark):
    table = pa.table({"id": pa.array([0], pa.int32()), "x": pa.array([1], pa.int32()), "s": ["abc"]})
    # Not a local relation: Spark would fail while it plans, and not as it does on a stream.
    spark.range(1).selectExpr("0 AS id", "CAST(id + 1 AS INT) AS x", "'abc' AS s").createOrReplaceTempView("t")
    for item in expressions("failing"):
        with pytest.raises(PySparkException, match=r"OVERFLOW|BY_ZERO|INVALID_INPUT|OUT_OF_RANGE"):
            spark.sql(f"SELECT {item} AS c0 FROM t").collect()
        ((_, expression),) = outputs(table, [item], "UTC")
        with pytest.raises(EvaluationError):
            evaluate(expression, lambda column: table[column.name], 1)


GUARDED = pa.table(
    {
        "id": pa.array([0, 1, 2, 3, 4], pa.int32()),
        "x": pa.array([None, 2, None, 4, 5], pa.int32()),
        "y": pa.array([0, 1, 3, None, 2], pa.int32()),
        "s": [None, "aba", None, "a", ""],
        "dt": pa.array([None, 1, None, 2, 3], pa.int32()).cast(pa.date32()),
    }
)
"""Where y is 0 all else is NULL, which guards what is divided by y in some places and not in others."""


@pytest.fixture
def guarded(spark, tmp_path):
    """As a file: Spark would evaluate a local relation while it plans."""
    pq.write_table(GUARDED, tmp_path / "t.parquet")
    spark.read.parquet(str(tmp_path / "t.parquet")).createOrReplaceTempView("t")
    return spark


def test_what_a_null_guards_in_spark_it_guards_here(guarded):
    items = expressions("guarded")
    for row in range(len(GUARDED)):
        table = GUARDED.slice(row, 1)
        for (_, expression), item in zip(outputs(table, items, "UTC"), items, strict=True):
            ours = answer_or_failure(
                lambda e=expression, t=table: evaluate(e, lambda column: t[column.name], 1).to_pylist()
            )
            expected = answer_of_spark(guarded, f"SELECT {item} FROM t WHERE id = {row}")
            assert ours == expected, f"{item} of {table.to_pylist()}"


def test_filters_stop_where_those_of_spark_do(guarded):
    items = expressions("filters")
    for (_, expression), item in zip(outputs(GUARDED, items, "UTC"), items, strict=True):
        ours = answer_or_failure(
            lambda e=expression: np.flatnonzero(evaluate_mask(e, lambda column: GUARDED[column.name], 5)).tolist()
        )
        assert ours == answer_of_spark(guarded, f"SELECT id FROM t WHERE {item} ORDER BY id"), item


def answer_or_failure(answer: Callable[[], list[object]]) -> list[object] | str:
    try:
        return answer()
    except EvaluationError:
        return "failed"


def answer_of_spark(spark: SparkSession, text: str) -> list[object] | str:
    try:
        return [value for (value,) in spark.sql(text).collect()]
    except PySparkException as error:
        if "BY_ZERO" not in str(error):
            raise
        return "failed"
