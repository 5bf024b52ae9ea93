"""Random conditions over random rows agree with DuckDB, for the part of SQL that means the same in both."""

from __future__ import annotations

from functools import cache

import duckdb
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dovetail.frontend.compile_sql import compile_sql
from dovetail.kernels.evaluate.evaluate import evaluate, evaluate_mask
from dovetail.query.expression import Expression
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, BOOLEAN, STRING

STREAM = Stream("t", (("id", BIGINT), ("x", BIGINT), ("y", BIGINT), ("s", STRING), ("p", BOOLEAN)))

small = st.integers(-5, 5)
letters = st.text("abz_%é", max_size=3)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "x": st.none() | small,
            "y": st.none() | small,
            "s": st.none() | letters,
            "p": st.none() | st.booleans(),
        }
    ),
    min_size=1,
    max_size=12,
)


def numbers() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["x", "y"]) | small.map(lambda n: f"({n})")
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            st.tuples(inner, inner).map(lambda t: f"coalesce({t[0]}, {t[1]})"),
            st.tuples(inner, inner).map(lambda t: f"nullif({t[0]}, {t[1]})"),
            st.tuples(inner, inner).map(lambda t: f"greatest({t[0]}, {t[1]})"),
            inner.map(lambda t: f"abs({t})"),
            st.tuples(inner, inner, inner).map(lambda t: f"CASE WHEN {t[0]} > {t[1]} THEN {t[2]} ELSE x END"),
        ),
        max_leaves=4,
    )


def texts() -> st.SearchStrategy[str]:
    quoted = letters.map(lambda text: f"'{text}'")
    return st.recursive(
        st.just("s") | quoted,
        lambda inner: st.one_of(
            inner.map(lambda t: f"(upper({t}) || 'a')"),
            st.tuples(inner, inner).map(lambda t: f"coalesce({t[0]}, {t[1]})"),
            inner.map(lambda t: f"replace({t}, 'a', 'bb')"),
            inner.map(lambda t: f"substring({t}, 2, 1)"),
        ),
        max_leaves=3,
    )


def conditions() -> st.SearchStrategy[str]:
    comparison = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM", "IS DISTINCT FROM"])
    pattern = letters.map(lambda text: f"'{text}'")
    leaves = st.one_of(
        st.just("p"),
        st.tuples(numbers(), comparison, numbers()).map(" ".join),
        st.tuples(texts(), comparison, texts()).map(" ".join),
        st.tuples(numbers(), numbers(), numbers()).map(lambda t: f"{t[0]} BETWEEN {t[1]} AND {t[2]}"),
        st.tuples(numbers(), st.lists(small, min_size=1, max_size=3)).map(
            lambda t: f"{t[0]} IN ({', '.join(map(str, t[1]))})"
        ),
        st.tuples(numbers(), numbers()).map(lambda t: f"{t[0]} NOT IN (1, NULL, {t[1]})"),
        st.tuples(texts(), pattern).map(" LIKE ".join),
        st.tuples(texts(), pattern).map(" NOT LIKE ".join),
        numbers().map(lambda t: f"{t} IS NULL"),
        texts().map(lambda t: f"{t} IS NOT NULL"),
        st.sampled_from(["TRUE", "FALSE"]),
    ).map(lambda t: f"({t})")
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            inner.map(lambda t: f"(NOT {t})"),
        ),
        max_leaves=5,
    )


def table_of(records: list[dict[str, object]]) -> pa.Table:
    schema = pa.schema(
        [("id", pa.int64()), ("x", pa.int64()), ("y", pa.int64()), ("s", pa.string()), ("p", pa.bool_())]
    )
    return pa.Table.from_pylist([{**record, "id": number} for number, record in enumerate(records)], schema=schema)


@cache
def duckdb_connection() -> duckdb.DuckDBPyConnection:
    """One for all examples: a new one takes longer than an example."""
    return duckdb.connect(config={"threads": 1})


def expression_of(item: str) -> Expression:
    text = f"SELECT {item} AS answer FROM t JOIN (SELECT id AS other FROM t) u ON t.id = u.other"
    return compile_sql(text, {"t": STREAM}).output[0].expression


def both(item: str, records: list[dict[str, object]]) -> tuple[list[object], list[object], list[bool] | None]:
    """Ours, DuckDB's, and our mask if it is a condition."""
    table = table_of(records)
    expression = expression_of(item)
    ours = evaluate(expression, lambda column: table[column.name], len(table))
    connection = duckdb_connection()
    connection.register("t", table)
    expected = [row[0] for row in connection.execute(f"SELECT {item} FROM t ORDER BY id").fetchall()]
    is_condition = ours.type == pa.bool_()
    mask = evaluate_mask(expression, lambda column: table[column.name], len(table)) if is_condition else None
    return ours.to_pylist(), expected, None if mask is None else mask.tolist()


@given(conditions(), rows)
def test_conditions_agree_with_duckdb(item, records):
    ours, expected, mask = both(item, records)
    assert ours == expected
    assert mask == [value is True for value in expected]


@given(numbers(), st.sampled_from(["IS NOT DISTINCT FROM", "IS DISTINCT FROM"]), numbers(), rows)
def test_null_safe_comparisons_agree_with_duckdb(first, comparison, second, records):
    ours, expected, mask = both(f"{first} {comparison} {second}", records)
    assert ours == mask == expected


@given(conditions(), numbers(), small, conditions(), rows)
def test_filters_agree_with_duckdb_where_a_null_guards_a_division(first, divisor, least, last, records):
    """DuckDB divides by zero without an error."""
    item = f"{first} AND nullif({divisor}, 0) > {least} AND 12 / {divisor} > {least} AND {last}"
    table = table_of(records)
    mask = evaluate_mask(expression_of(item), lambda column: table[column.name], len(table))
    connection = duckdb_connection()
    connection.register("t", table)
    expected = connection.execute(f"SELECT coalesce({item}, FALSE) FROM t ORDER BY id").fetchall()
    assert mask.tolist() == [value for (value,) in expected]


@given(numbers(), rows)
def test_numbers_agree_with_duckdb(item, records):
    ours, expected, _ = both(f"coalesce({item}, NULL)", records)
    assert ours == expected


@given(texts(), rows)
def test_texts_agree_with_duckdb(item, records):
    ours, expected, _ = both(item, records)
    assert ours == expected
