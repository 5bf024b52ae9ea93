"""All selections of a store decided over its rows, as words of bits and as counts (A4).

Comparisons with constants are decided column by column where there are many (`thresholds`), everything else selection
by selection. Both give the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.evaluate.evaluate import evaluate_mask
from dovetail.kernels.evaluate.rows import Rows
from dovetail.kernels.select.select_rows import SelectionWords, add_mask, no_selections
from dovetail.kernels.select.thresholds import Thresholds, compared_column, thresholds_of
from dovetail.query.expression import Column, Expression

OnFailure = Callable[[Expression, Exception], None]

MANY_OF_A_COLUMN = 24
"""From so many comparisons of one column on, one search for all of them takes less time than each on its own."""


@dataclass(frozen=True)
class AllSelections:
    """What each selection says of each row, how many rows it passes, and what it took; 0 where many are one search."""

    words: SelectionWords
    counts: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]


def select_all(
    selections: tuple[Expression, ...],
    column_of: Callable[[Column], pa.Array],
    length: int,
    timezone: str,
    on_failure: OnFailure,
) -> AllSelections:
    """One that fails is told, and passes no row."""
    plan = _plan(selections, timezone)
    words = no_selections(len(selections), length)
    counts = np.zeros(len(selections), np.int64)
    seconds = np.zeros(len(selections), np.float64)
    rows = Rows(column_of, length, timezone)
    for thresholds in plan.by_column:
        thresholds.add(words, rows, counts)
    failed = []
    for place in plan.one_by_one:
        began = time.thread_time()
        try:
            mask = evaluate_mask(selections[place], column_of, length, timezone=timezone)
        except Exception as error:  # noqa: BLE001 - who asks is charged; what is nobody's fault is raised there
            failed.append(place)
            on_failure(selections[place], error)
            continue
        counts[place] = np.count_nonzero(mask)
        add_mask(words, place, mask)
        seconds[place] = time.thread_time() - began
    return AllSelections(SelectionWords(words, len(selections), length, frozenset(failed)), counts, seconds)


@lru_cache(maxsize=64)
def compared_columns(selections: tuple[Expression, ...]) -> frozenset[str] | None:
    """What selections read that all compare a column with constants: quick to decide, and none fails. Else None."""
    columns = [compared_column(selection) for selection in selections]
    named = frozenset(column.name for column in columns if column is not None)
    return None if None in columns else named


@dataclass(frozen=True)
class _Plan:
    by_column: tuple[Thresholds, ...]
    one_by_one: tuple[int, ...]


@lru_cache(maxsize=64)
def _plan(selections: tuple[Expression, ...], timezone: str) -> _Plan:
    by_column: dict[Column, dict[int, Expression]] = {}
    if len(selections) >= MANY_OF_A_COLUMN:
        for place, selection in enumerate(selections):
            column = compared_column(selection)
            if column is not None:
                by_column.setdefault(column, {})[place] = selection
    many = {column: own for column, own in by_column.items() if len(own) >= MANY_OF_A_COLUMN}
    together = {place for own in many.values() for place in own}
    return _Plan(
        tuple(thresholds_of(column, own, timezone) for column, own in many.items()),
        tuple(place for place in range(len(selections)) if place not in together),
    )
