"""Was it contained? What an error must say, and whether two answers are the same."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from benchmarks.hostile.records import Outcome
from dovetail.core.errors import DovetailError, SqlError
from dovetail.store.readable_texts import with_readable_texts

Answers = Counter[tuple[str, ...]]
_NOT_COMPARED = re.compile(r"LEFT |FULL |NOT EXISTS|window\(|Range |approx_count_distinct", re.IGNORECASE)
"""Answered when a row is decided or a window closes, which is after the wave, or not exactly."""


def of_refusal(error: BaseException) -> tuple[Outcome, str]:
    """Refused as it should be: what, where if it is about a text, and what to do instead."""
    detail = f"{type(error).__name__}: {error}"
    is_told = isinstance(error, DovetailError) and bool(error.what and error.hint)
    if isinstance(error, SqlError):
        is_told &= bool(error.where)
    return (Outcome.REFUSED if is_told else Outcome.POOR_ERROR), detail


def may_be_compared(sql: str) -> bool:
    return not _NOT_COMPARED.search(sql)


def answers_of(table: pa.Table) -> Answers:
    """Rows as texts, columns by their place; no sign of a zero, and sums of doubles by their leading digits."""
    columns = [
        [_text(value) for value in _countable(column).to_pylist()] for column in with_readable_texts(table).columns
    ]
    return Counter(zip(*columns, strict=True)) if columns else Counter()


def _countable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Days and microseconds as numbers: SQL has years that Python has not."""
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def with_good_keys(answers: Answers, key_places: Iterable[int]) -> Answers:
    """Without the rows of which a key is below zero or missing: it is open whether the streams took them."""
    places = tuple(key_places)
    return Counter(
        {row: count for row, count in answers.items() if not any(row[p].startswith(("-", "None")) for p in places)}
    )


def difference(found: Answers, expected: Answers) -> str:
    """In words; nothing if they are the same."""
    if found == expected:
        return ""
    missing, more = expected - found, found - expected
    example = next(iter(missing or more))
    return f"{missing.total()} rows missing, {more.total()} too many of {expected.total()}, such as {example}"


def _text(value: Any) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        return f"{value + 0.0:.11g}"
    return str(value)
