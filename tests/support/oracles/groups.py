"""Groups by brute force: each aggregate from all values of its group at once, in exact numbers.

No partial sums, no merging, no order: nothing that the engine's aggregation could get wrong in the same way. Spark's
rules of NULL, NaN and minus zero, and its rounding of decimals, are written out here once more.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.query.aggregation import GROUP, Aggregate, AggregateFunction, Aggregation, aggregate_column, key_column
from dovetail.query.join_query import WINDOW_END, WINDOW_START, JoinQuery
from dovetail.query.types import BIGINT, SqlType
from tests.support.oracles.nested_loops import Columns, evaluated, window_starts

SPARK_DIVISION_SCALE = 38
_EXACT = decimal.Context(prec=400)
_Key = tuple[Any, ...]


def group_rows(query: JoinQuery, columns: Columns, row_count: int, closed_until_us: int | None) -> pa.Table:
    """The answers of an aggregation over joined rows. Of a windowed one: those of windows that are closed."""
    aggregation = query.aggregation
    assert aggregation is not None
    columns, row_count, starts = _with_group_windows(aggregation, columns, row_count)
    keys = [[_grouped(value) for value in evaluated(key, columns, row_count).to_pylist()] for key in aggregation.keys]
    rows_by_key: dict[_Key, list[int]] = {(): []} if aggregation.is_global else {}
    for row in range(row_count):
        key = (*(values[row] for values in keys), *((starts[row],) if starts is not None else ()))
        rows_by_key.setdefault(key, []).append(row)
    if aggregation.is_windowed:
        rows_by_key = {
            key: rows for key, rows in rows_by_key.items() if _is_closed(query, aggregation, key, closed_until_us)
        }
    return _finished(query, aggregation, rows_by_key, _arguments(aggregation, columns, row_count))


def _with_group_windows(
    aggregation: Aggregation, columns: Columns, row_count: int
) -> tuple[Columns, int, list[int] | None]:
    if aggregation.window is None:
        return columns, row_count, None
    row_idx, starts = window_starts(evaluated(aggregation.window.time, columns, row_count), aggregation.window)
    taken = {name: array.take(pa.array(row_idx, pa.int64())) for name, array in columns.items()}
    return taken, len(row_idx), starts


def _grouped(value: Any) -> Any:
    """A key as groups tell it apart: NaN is one value, and so are both zeros."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def _is_closed(query: JoinQuery, aggregation: Aggregation, key: _Key, closed_until_us: int | None) -> bool:
    if closed_until_us is None:
        return False
    if aggregation.window is not None:
        return bool(key[-1] + aggregation.window.size_us <= closed_until_us)
    assert aggregation.window_key is not None
    assert aggregation.window_relation is not None
    hop_window = query.relation(aggregation.window_relation).hop_window
    assert hop_window is not None
    return _micros(key[aggregation.window_key]) + hop_window.size_us <= closed_until_us


def _micros(moment: datetime.datetime) -> int:
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    return (zoned - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)


def _arguments(aggregation: Aggregation, columns: Columns, row_count: int) -> list[list[_Key | None]]:
    """By aggregate and row the values of its arguments; None where one of them is NULL, which no aggregate counts."""
    found = []
    for aggregate in aggregation.aggregates:
        arrays = [evaluated(argument, columns, row_count).to_pylist() for argument in aggregate.arguments]
        rows = [tuple(array[row] for array in arrays) for row in range(row_count)]
        found.append([None if any(value is None for value in row) else row for row in rows])
    return found


def _finished(
    query: JoinQuery, aggregation: Aggregation, rows_by_key: dict[_Key, list[int]], arguments: list[list[_Key | None]]
) -> pa.Table:
    """HAVING and the output over the finished groups."""
    groups: dict[str, pa.Array] = {}
    for position, key in enumerate(aggregation.keys):
        groups[key_column(position)] = _array([_ungrouped(found[position]) for found in rows_by_key], key.type)
    for position, aggregate in enumerate(aggregation.aggregates):
        values = [
            aggregate_value(aggregate, [row for idx in rows if (row := arguments[position][idx]) is not None])
            for rows in rows_by_key.values()
        ]
        groups[aggregate_column(position)] = _array(values, aggregate.type)
    if aggregation.window is not None:
        starts = [key[-1] for key in rows_by_key]
        moment = arrow_type(aggregation.window.time.type)
        groups[WINDOW_START] = _array(starts, BIGINT).cast(moment)
        groups[WINDOW_END] = _array([start + aggregation.window.size_us for start in starts], BIGINT).cast(moment)
    count = len(rows_by_key)
    of_groups: Columns = {(GROUP, name): array for name, array in groups.items()}
    kept = evaluated(aggregation.having, of_groups, count).fill_null(False)
    outputs = [
        evaluate(column.expression, lambda name: groups[name.name].filter(kept), kept.true_count)
        for column in query.output
    ]
    return pa.Table.from_arrays(outputs, names=[column.name for column in query.output])


def _ungrouped(value: Any) -> Any:
    return math.nan if value == "NaN" else value


def _array(values: Sequence[Any], sql_type: SqlType) -> pa.Array:
    return pa.array(values, arrow_type(sql_type))


def aggregate_value(aggregate: Aggregate, rows: list[_Key]) -> Any:
    """The value of an aggregate over the rows in which no argument is NULL."""
    function = aggregate.function
    if function is AggregateFunction.COUNT:
        return len(rows)
    if function in (AggregateFunction.COUNT_DISTINCT, AggregateFunction.APPROX_COUNT_DISTINCT):
        return len({tuple(map(_grouped, row)) for row in rows})
    return _value_of(aggregate, [row[0] for row in rows]) if rows else None


def _value_of(aggregate: Aggregate, values: list[Any]) -> Any:
    if aggregate.function in (AggregateFunction.MIN, AggregateFunction.MAX):
        return _extreme(values, is_largest=aggregate.function is AggregateFunction.MAX)
    total = _total(values)
    if aggregate.function is AggregateFunction.SUM:
        return total
    if isinstance(total, Decimal):
        return _decimal_average(total, len(values), aggregate.type.scale)
    return float(total) / len(values)


def _extreme(values: list[Any], *, is_largest: bool) -> Any:
    """NaN is above all numbers."""
    numbers = [value for value in values if not (isinstance(value, float) and math.isnan(value))]
    if not numbers or (is_largest and len(numbers) < len(values)):
        return math.nan
    return max(numbers) if is_largest else min(numbers)


def _total(values: list[Any]) -> Any:
    if isinstance(values[0], Decimal):
        with decimal.localcontext(_EXACT):
            return sum(values, Decimal(0))
    if isinstance(values[0], int):
        return sum(values)
    special = [value for value in values if not math.isfinite(value)]
    return sum(special) if special else math.fsum(values)


def _decimal_average(total: Decimal, count: int, scale: int) -> Decimal:
    """Spark divides to 38 digits after the point, then rounds to the result's; both half up."""
    with decimal.localcontext(_EXACT):
        quotient = (total / count).quantize(Decimal(1).scaleb(-SPARK_DIVISION_SCALE), ROUND_HALF_UP)
        return quotient.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
