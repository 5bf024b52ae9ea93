"""Answers as JSON: the table of types in docs/rest.md."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from dovetail.store.readable_texts import with_readable_texts


def json_bytes(value: Any) -> bytes:
    """What JSON does not have must not fail an answer: half a character becomes «?», NaN and infinity null."""
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace")


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows under the names of their columns.

    >>> import decimal
    >>> json_rows(pa.table({"price": [decimal.Decimal("1.50"), None], "x": [1.0, float("nan")]}))
    [{'price': '1.50', 'x': 1.0}, {'price': None, 'x': 'NaN'}]
    """
    columns = [_json_values(column.combine_chunks()) for column in with_readable_texts(table).columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _json_values(array: pa.Array) -> Iterable[Any]:
    kind = array.type
    if pa.types.is_timestamp(kind):
        return _times(array, "us", "Z" if kind.tz is not None else "")
    if pa.types.is_date(kind):
        return _times(array, "D", "")
    if pa.types.is_struct(kind):
        fields = [_json_values(array.field(place)) for place in range(kind.num_fields)]
        names = [kind.field(place).name for place in range(kind.num_fields)]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*fields, strict=True))
        return [row if is_valid else None for row, is_valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    values: list[Any] = array.to_pylist()
    if pa.types.is_floating(kind):
        return [value if value is None or math.isfinite(value) else _not_finite(value) for value in values]
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in values]
    return values


def _times(array: pa.Array, unit: Literal["D", "us"], suffix: str) -> list[str | None]:
    """By NumPy, whose calendar also has the years that Python's does not."""
    numbers = array.cast(pa.int32() if unit == "D" else pa.int64()).cast(pa.int64())
    moments = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(f"datetime64[{unit}]")
    texts: np.ndarray[Any, np.dtype[np.str_]] = np.datetime_as_string(moments, unit=unit)
    valid = array.is_valid().to_pylist()
    return [f"{text}{suffix}" if is_valid else None for text, is_valid in zip(texts, valid, strict=True)]


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
