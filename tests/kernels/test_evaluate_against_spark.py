"""Every supported expression, on random rows, gives what Spark's batch SQL gives: same types, same values, bit by bit."""

from __future__ import annotations

import datetime
import math
import random
import struct
from decimal import Decimal

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from dovetail.core.errors import EvaluationError
from dovetail.frontend.compile_sql import compile_sql
from dovetail.kernels.arrow_types import arrow_type, sql_type_of
from dovetail.kernels.evaluate import evaluate, evaluate_mask
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

NUMBER_EXPRESSIONS = """
i + 1 | i + big | ti + sm | sm - ti | i * 2L | f + f | f + i | f * d | d - e | d / 2 | i / 3 | i / nullif(j, 0)
d / nullif(e, 0D) | f / nullif(f, 0F) | -i | -d | -f | +i | abs(i) | abs(d) | abs(f) | i % 7 | i % nullif(j, 0)
d % nullif(e, 0D) | mod(i, 5) | pmod(i, 7) | pmod(i, nullif(j, 0)) | pmod(d, 3) | i div 4 | big div 7 | ti % 3Y | ti div 2Y
i > j | i >= j | i < j | i <= j | i = j | i <> j | i <=> j | i != 3 | i > 1.5 | i = 2.0 | i = 2.5 | i <> 2.5 | big > 3000000000
i < 3000000000 | ti < 300 | ti = 5 | sm >= i | f > d | f = d | d > e | d >= e | d < e | d <= e | d = e | d <> e | d <=> e | d > 0 | d >= 1.5
d <= 1.5 | d = 0 | d < -1e0 | f > 0.1 | f >= 1 | f = 0 | not (d > 0) | not (d <= e) | i is null | i is not null | d is null
bo and i > 0 | bo or i > 0 | not bo | bo and null | bo or null | bo = (i > 0) | bo is true | bo is not true | bo is false | bo is not false
i between 1 and 5 | i not between 1 and j | d between 0 and e | i in (1, 2, 3) | i in (1, null) | i not in (1, 2) | i not in (1, null)
i in (j, 3) | d in (0, 1.5) | big in (1, 2, 3000000000) | bo in (true) | i in (1.0, 2.5)
case when i > 0 then 'pos' when i < 0 then 'neg' else 'zero' end | case when i > 0 then i end | case i when 1 then 1.5 when 2 then 2 else i end
case when bo then i else big end | case when bo then f else i end | case when j <> 0 then i / j else -1 end | case when bo then ti else sm end
if(i > 0, i, j) | if(bo, d, f) | coalesce(i, j, 0) | coalesce(i, big) | coalesce(d, i) | nullif(i, j) | ifnull(i, 7) | nvl(j, 1.5) | nvl2(i, j, big)
greatest(i, j) | greatest(i, j, big) | least(i, j, 0) | greatest(d, e) | least(d, e) | least(d, 0, i) | greatest(f, d)
sign(i) | sign(d) | signum(e) | sqrt(i) | sqrt(d) | power(d, 2) | power(d, 0.5) | power(i, 2) | pow(d, 0) | pow(e, 1)
round(d) | round(d, 2) | round(d, -1) | round(f) | round(f, 1) | round(i) | round(i, 2) | round(sm, -1) | round(big, -2) | round(e, 5)
floor(g) | ceil(g) | floor(i) | ceil(i) | ceiling(h) | floor(h) | isnan(d) | isnan(f) | isnan(i) | isnull(i) | isnotnull(d)
cast(i as bigint) | cast(ti as smallint) | cast(i as double) | cast(big as double) | cast(big as float) | cast(i as float) | cast(d as float)
cast(f as double) | cast(i % 100 as tinyint) | cast(g as int) | cast(g as bigint) | cast(h as smallint) | cast(g as tinyint) | cast(i as boolean)
cast(d as boolean) | cast(bo as int) | cast(bo as double) | cast(bo as string) | cast(i as string) | cast(big as string) | i::string
cast(i as decimal(12, 2)) | cast(big as decimal(20, 0)) | cast(g as decimal(10, 3)) | cast(h as decimal(10, 5)) | cast(h as decimal(20, 15)) | cast(bo as decimal(3, 1))
i + 1.5 | i * 2.25 | i / 2.5 | i % 2.5 | big * 1.1 | d + 1.5 | d * 2 | f * 1.5 | 2 * i + 3 * j - 1 | (i + j) * (i - j) | - - i | 1e2 * d | 1.5F + f | 2S + ti
(i > 0) = (j > 0) | i > 0 and j > 0 or d > 0 | not (i > 0 and j > 0) | not (i > 0 or bo) | bo <=> null | null | 5 | 1.50 | 'x' | true
i = 1 or j = 1 and bo | 7 < i | 7.5 >= i | 3 = i | i in (1) and d > 0 | (i + j) / 2 > 3 | nullif(i, 1.5)
j <> 0 and i / j > 1 | j = 0 or i / j > 1 | if(j = 0, 0, i % j) | case when j is null or j = 0 then null else i div j end | cast(null as int) + 1 / 0 | case when true then 1 else 1 / 0 end
case when j = 0 then 'none' when i / j > 1 then 'much' else 'little' end | not (j <> 0 and i / j > 1) | false and 1 / 0 > 1 | coalesce(1, 1 / 0) | j in (1, 2) and i / j > 0 | nvl2(nullif(j, 0), i / nullif(j, 0), 0)
case when abs(j) between 1 and 100 then cast(j as tinyint) else 0Y end | if(big between 0 and 100, cast(big as int), 0) + 1 | (j <> 0 and i / j > 1) or bo | bo and (j = 0 or 10 div j > 0)
"""

DECIMAL_EXPRESSIONS = """
p5 + p10 | p5 - p18 | p5 * p5 | p5 * p10 | p10 * p18 | p18 * p18 | p30 + p38 | p30 - p30 | p30 * p5 | p38 * p5 | p30 * p18 | p5 / 3 | p5 / nullif(p10, 0)
p18 / nullif(p18, 0) | p30 / 7 | p38 / 3 | p5 % 3 | p18 % nullif(p5, 0) | p30 % 2.5 | p5 div 3 | p18 div nullif(p5, 0) | -p5 | abs(p18) | -p38
p5 + 1 | p5 * 2 | p5 + i | i * p5 | p18 + big | p5 + 1.5 | p5 * d | p5 + d | p5 / 2.0 | whole + 1 | whole * 1.5 | 10 - p5 | p38 + 0.5 | p38 - p5
p5 > p10 | p5 = p10 | p5 < 3 | p5 >= 1.5 | p18 <= i | p5 <> d | p5 <=> p10 | whole > 5 | whole = big | p38 > 1 | p5 in (1, 2.5) | p10 in (1.234, null)
p5 between 0 and p10 | case when p5 > 0 then p5 else p18 end | coalesce(p5, i) | coalesce(p5, 1.23456) | nvl(p18, 1) | greatest(p5, p10, i) | least(p5, d) | nullif(p5, 0)
round(p5) | round(p5, 1) | round(p18, 3) | round(p18, -1) | round(p38, 2) | round(p30, 12) | floor(p5) | ceil(p5) | floor(p38) | ceil(p18) | ceil(whole) | sign(p5) | sqrt(abs(p5))
cast(p5 as int) | cast(p18 as bigint) | cast(p5 as double) | cast(p18 as double) | cast(p38 as double) | cast(p30 as double) | cast(p5 as float) | cast(p18 as float)
cast(p5 as string) | cast(p38 as string) | cast(p18 as decimal(20, 2)) | cast(p18 as decimal(30, 10)) | cast(p5 as decimal(38, 30)) | cast(p38 as decimal(38, 6)) | cast(p5 as boolean)
cast(whole as string) | cast(cast(p5 as string) as decimal(5, 2)) | cast(p5 as decimal(4, 1)) | cast(d as decimal(20, 5)) | p5 is null | power(p5, 2) | if(p5 > 0, p5, 0)
"""

STRING_EXPRESSIONS = r"""
upper(s) | lower(s) | ucase(t) | length(s) | char_length(t) | reverse(s) | trim(s) | ltrim(s) | rtrim(s) | trim('a', s) | ltrim('ab', s) | rtrim('b ', s) | btrim(s, 'a') | btrim(s)
trim(both 'a' from s) | trim(leading 'a' from s) | trim(trailing from s) | trim(t, s) | substring(s, 2) | substring(s, 2, 3) | substring(s, 0, 2) | substring(s, -3, 2) | substring(s, -2) | substr(s, n, 2)
substring(s, 1, n) | substring(s from 2 for 2) | left(s, 2) | right(s, 2) | left(s, n) | right(s, n) | repeat(s, 2) | repeat(s, n) | lpad(s, 5, 'xy') | rpad(s, 5) | lpad(s, n, t) | rpad(s, 4, '')
concat(s, t) | concat(s, '-', t, n) | s || t | s || n || t | s || 'x' | replace(s, 'a') | replace(s, 'a', 'bb') | replace(s, t, '_') | replace(s, '', 'x') | startswith(s, 'a') | startswith(s, t)
endswith(s, 'b') | endswith(s, t) | contains(s, 'a') | contains(s, t) | contains(s, '') | instr(s, 'a') | instr(s, t) | locate('a', s) | locate('a', s, 2) | locate(t, s, n) | position('a' in s) | instr(s, '')
s = t | s < t | s >= t | s <=> t | s <> t | s > 'b' | s in ('a', 'ab', '') | s in ('a', null) | s between 'a' and 'c' | s = 'ä' | s is null | 'a' = 'a '
s like 'a%' | s like '%a' | s like '%a%' | s like 'a_' | s like '_' | s like '%' | s like '' | s like 'a%b' | s not like 'a%' | s like '%\\%%' | s like '%/%%' escape '/' | s like '_%_' | s like 'a' | s like '%a%b%' | s like '%.%'
s rlike 'a+b' | s rlike '^a' | s rlike 'b$' | s rlike '[a-c]{2}' | s rlike 'a|c' | s rlike '\\d' | s rlike '^.$' | s rlike '^\\w*$' | regexp_like(s, '(ab)+') | s rlike '\\s' | s rlike '[^a]' | not s rlike 'a' | s rlike '^.*$' | s rlike 'a.b'
coalesce(s, t, '?') | nullif(s, t) | greatest(s, t) | least(s, t, 'b') | case when s = 'a' then t else s end | if(s like 'a%', upper(s), t) | nvl(s, 'x')
cast(num as int) | cast(num as bigint) | cast(num as double) | cast(num as decimal(10, 2)) | cast(num as float) | cast(num as tinyint) | num::smallint | cast(case when n > 0 then 'yes' else ' F ' end as boolean)
cast(when_text as date) | cast(when_text as timestamp) | cast(when_text as timestamp_ntz) | to_date(when_text) | date(when_text)
"""

TIME_EXPRESSIONS = """
year(ts) | quarter(ts) | month(ts) | day(ts) | dayofmonth(dt) | hour(ts) | minute(ts) | second(ts) | dayofweek(ts) | weekday(dt) | dayofyear(dt) | weekofyear(ts) | year(dt) | month(ntz) | hour(ntz) | hour(dt)
extract(year from ts) | extract(hour from ts) | extract(week from dt) | date_trunc('year', ts) | date_trunc('quarter', ts) | date_trunc('MM', ts) | date_trunc('week', ts) | date_trunc('DAY', ts)
date_trunc('hour', ts) | date_trunc('minute', ts) | date_trunc('second', ts) | date_trunc('millisecond', ts) | date_trunc('microsecond', ts) | date_trunc('month', dt) | date_trunc('hour', ntz)
to_date(ts) | date(ntz) | to_date(dt) | date_add(dt, 5) | date_sub(dt, n) | date_add(ts, n) | datediff(dt, du) | datediff(ts, dt) | date_diff(us, ts) | dt + 1 | dt - n | n + dt
ts + interval 5 seconds | ts - interval '5' minute | ts + interval '1 hour 30 minutes' | interval 2 days + ts | ts + interval 1 week | ntz + interval 3 milliseconds | dt + interval 2 days | dt + interval 3 hours | dt - interval 90 minutes
(us - ts) > interval 1 hour | (ts - us) < interval '2' day | ts - us = us - ts | ts + interval '1 02:03:04' day to second
ts > us | ts <= us | ts = us | ts <=> us | ts > dt | ntz < dt | dt = du | dt >= du | ts >= '2001-02-03' | ts < '2030-01-01 12:30:00' | dt > '1999-12-31' | ntz <= '2020-02-02 02:02:02.5' | ts = timestamp '2000-01-01 00:00:00'
dt <> date '2000-01-01' | dt in (date '2000-01-01', '2001-01-01') | ts between '1990-01-01' and us | ts > ntz | ts is null | ts between us - interval 5 days and us + interval 5 days
cast(ts as date) | cast(dt as timestamp) | cast(ts as timestamp_ntz) | cast(ntz as timestamp) | cast(ntz as date) | cast(dt as timestamp_ntz) | cast(ts as string) | cast(ntz as string) | cast(dt as string) | cast(ts as bigint)
unix_timestamp(ts) | unix_seconds(ts) | unix_millis(ts) | unix_micros(ts) | timestamp_seconds(n) | timestamp_millis(big) | timestamp_micros(big) | coalesce(ts, us) | coalesce(dt, ts) | greatest(dt, du) | least(ts, us, dt) | nullif(dt, du)
case when dt > du then ts else us end | if(ts > us, dt, du) | nvl(ts, '2000-01-01') | case when n > 0 then dt else '2024-05-06' end | concat(dt, ' ', ts) | greatest(ts, ntz)
"""


def expressions(text: str) -> list[str]:
    return [part.strip() for line in text.splitlines() for part in line.split(" | ") if part.strip()]


def number_rows(rng: random.Random) -> list[dict[str, object]]:
    doubles = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -2.5, 0.1, 2.5, 1e300, 5e-324, 0.49999999999999994, 123456.785]

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
    times = ["2024-02-29", "2024-1-2", "1999", "2001-02", " 2020-03-04 ", "2024-01-02 03:04:05", "2024-01-02T03:04:05.1234567"]
    times += ["1960-12-31 23:59:59.999999", "2024-01-02 03:04", "2024-01-02 03:04:05Z", "2024-01-02 03:04:05 ", "2024-01-02 3"]
    return [
        {"s": text(), "t": rng.choice(["a", "", "ab", text()]), "n": rng.randint(-3, 7)}
        | {"num": rng.choice(numbers), "when_text": rng.choice(times)}
        for _ in range(ROWS)
    ]


def time_rows(rng: random.Random) -> list[dict[str, object]]:
    epoch = datetime.datetime(1970, 1, 1)
    days = [datetime.date(2000, 1, 1), datetime.date(2001, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]

    def moment() -> datetime.datetime:
        micros = rng.choice([0, -1, 1, 946684800000000, rng.randint(-(3 * 10**15), 3 * 10**15), rng.randint(-(10**9), 10**9)])
        return epoch + datetime.timedelta(microseconds=micros)

    def day() -> datetime.date:
        return rng.choice([*days, datetime.date(1970, 1, 1) + datetime.timedelta(days=rng.randint(-30000, 30000))])

    def aware() -> datetime.datetime:
        return moment().replace(tzinfo=datetime.UTC)

    return [
        {"ts": aware(), "us": aware(), "ntz": moment(), "dt": day(), "du": day(), "n": rng.randint(-40, 40)}
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
    "numbers": (NUMBERS, number_rows, NUMBER_EXPRESSIONS),
    "decimals": (DECIMALS, decimal_rows, DECIMAL_EXPRESSIONS),
    "strings": (STRINGS, string_rows, STRING_EXPRESSIONS),
    "times": (TIMES, time_rows, TIME_EXPRESSIONS),
}


def bits(value: object) -> object:
    """A value in a form where NaN equals itself, -0.0 differs from 0.0, and instants are what they are in UTC."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    return "nan" if value != value else struct.pack("d", value) if isinstance(value, float) else value


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


@pytest.mark.parametrize("family", FAMILIES)
def test_expressions_equal_spark(spark, family):
    schema, make_rows, text = FAMILIES[family]
    rng = random.Random(family)
    table = table_of(schema, make_rows(rng), rng)
    items = expressions(text)
    view_of(spark, table)
    select = ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))
    expected = spark.sql(f"SELECT {select} FROM t ORDER BY id").toArrow()
    problems = []
    for (name, expression), item in zip(outputs(table, items), items, strict=True):
        actual = evaluate(expression, lambda column: table[column.name], len(table))
        wanted = expected[name].combine_chunks()
        if wanted.type != actual.type:
            problems.append(f"{item}: type {actual.type}, Spark {wanted.type}")
        pairs = list(zip(actual.to_pylist(), wanted.to_pylist(), strict=True))
        wrong = [(row, a, b) for row, (a, b) in enumerate(pairs) if bits(a) != bits(b)]
        if wrong:
            row, a, b = wrong[0]
            used = {c: v for c, v in table.slice(row, 1).to_pylist()[0].items() if c in item}
            problems.append(f"{item}: {len(wrong)} rows differ, for example {a!r}, Spark {b!r} for {used}")
        if actual.type == pa.bool_():
            mask = evaluate_mask(expression, lambda column: table[column.name], len(table))
            if mask.tolist() != [value is True for value in wanted.to_pylist()]:
                problems.append(f"{item}: mask differs")
    assert not problems, "\n".join(problems)
