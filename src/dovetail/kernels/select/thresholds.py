"""Many comparisons of one column with constants, decided together: one search tells a row's answer to all of them.

    x < 5, x >= 5, x > 9      constants 5, 9      regions  x<5 | 5 | between | 9 | x>9      and one for NULL
                                                  x < 5     1    0      0      0    0         0
                                                  x >= 5    0    1      1      1    1         0
                                                  x > 9     0    0      0      0    1         0

The region of a value is found by a table of cells over the constants and a short search in its cell; what all
selections say of a region is a column of bits, written into the row's words at once. A row costs a search for each such
column and an access for each word, however many selections there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.masks import COMPARED_BY, plain_constant
from dovetail.kernels.evaluate.rows import Numbers, Rows, numbers, numpy_type, valid_mask
from dovetail.kernels.select.select_rows import U64, Mask
from dovetail.kernels.word_bits import WORD_BITS
from dovetail.query.expression import Call, Column, Expression, Literal

_CELLS = 4096


def compared_column(condition: Expression) -> Column | None:
    """The column of a condition that consists of comparisons of this one column with constants; None of any other."""
    columns = set(_columns(condition))
    return next(iter(columns)) if len(columns) == 1 and None not in columns else None


def _columns(condition: Expression) -> Iterator[Column | None]:
    """Of each comparison; None for what is none."""
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        for each in condition.args:
            yield from _columns(each)
    else:
        yield condition.args[0] if _constant(condition) is not None else None  # type: ignore[union-attr,misc]


def _constant(condition: Expression) -> Any:
    """What a column is compared with, as it stands in the column's buffer; None if this is no such comparison."""
    if not isinstance(condition, Call) or condition.function not in COMPARED_BY:
        return None
    column, literal = condition.args
    if not isinstance(column, Column) or not isinstance(literal, Literal) or column.type != literal.type:
        return None
    return plain_constant(literal)


@dataclass(frozen=True)
class Thresholds:
    """Selections over one column: by word, what those of its bits say of each region."""

    column: Column
    constants: Numbers
    bits_by_word: dict[int, U64]
    places: tuple[int, ...]
    passed_by_place: tuple[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], ...]
    """For each of the places the stretches of regions that pass: where they begin and end."""

    def add(self, words: tuple[U64, ...], rows: Rows, counts: npt.NDArray[np.int64]) -> None:
        """Decide these selections; `counts` learns how many rows each passes."""
        regions = self._regions(rows)
        ends = np.cumsum(np.bincount(regions, minlength=2 * len(self.constants) + 2))
        upto = np.concatenate([[0], ends])
        for place, (begin, end) in zip(self.places, self.passed_by_place, strict=True):
            counts[place] = (upto[end] - upto[begin]).sum()
        for word, bits in self.bits_by_word.items():
            _add_bits(words[word], regions, bits)

    def _regions(self, rows: Rows) -> npt.NDArray[np.int32]:
        array = rows.column(self.column)
        low = float(self.constants[0])
        with np.errstate(all="ignore"):
            # Constants that lie too far apart are all in the first cell.
            scale = float(np.float64(_CELLS - 2) / (np.float64(self.constants[-1]) - low))
        scale = scale if np.isfinite(scale) else 0.0
        regions = np.empty(rows.length, np.int32)
        _find_regions(numbers(array), self.constants, _cells(self.constants, low, scale), low, scale, regions)
        if array.null_count:
            regions[~valid_mask(array, rows.length)] = 2 * len(self.constants) + 1
        return regions


def thresholds_of(column: Column, conditions: dict[int, Expression], timezone: str) -> Thresholds:
    """Of conditions by their places that all compare this column."""
    dtype = numpy_type(arrow_type(column.type, timezone))
    constants = np.unique(np.array([c for each in conditions.values() for c in _constants(each)], dtype))
    bits_by_word: dict[int, U64] = {}
    passed_by_place = []
    for place, condition in conditions.items():
        passed = np.append(_passed(condition, constants), False)
        edges = np.flatnonzero(np.diff(passed, prepend=False, append=False))
        passed_by_place.append((edges[::2], edges[1::2]))
        word, bit = divmod(place, WORD_BITS)
        bits = bits_by_word.setdefault(word, np.zeros(len(passed), np.uint64))
        bits |= passed.astype(np.uint64) << np.uint64(bit)
    return Thresholds(column, constants, bits_by_word, tuple(conditions), tuple(passed_by_place))


def _constants(condition: Expression) -> Iterator[Any]:
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        for each in condition.args:
            yield from _constants(each)
    else:
        yield _constant(condition)


def _passed(condition: Expression, constants: Numbers) -> Mask:
    """The regions of values that are no NULL in which the condition is true: 2 k + 1 is that of constant k."""
    if not isinstance(condition, Call):
        raise TypeError(f"{condition} is no comparison")
    if condition.function in ("and", "or"):
        first, second = (_passed(each, constants) for each in condition.args)
        return first & second if condition.function == "and" else first | second
    regions = np.arange(2 * len(constants) + 1)
    mask: Mask = COMPARED_BY[condition.function](regions, 2 * np.searchsorted(constants, _constant(condition)) + 1)
    return mask


@njit(cache=True)
def _cell_of(value: Any, low: Any, scale: Any) -> Any:
    """Never less for a greater value, however the arithmetic rounds: that is all the search needs."""
    cell = (np.float64(value) - low) * scale
    if not cell > 0.0:
        return 0
    if cell >= _CELLS - 1:
        return _CELLS - 1
    return int(cell)


@njit(cache=True)
def _cells(constants: Any, low: Any, scale: Any) -> Any:
    """Where the constants of each cell begin."""
    begins = np.zeros(_CELLS + 1, np.int32)
    for constant in constants:
        begins[_cell_of(constant, low, scale) + 1] += 1
    for cell in range(_CELLS):
        begins[cell + 1] += begins[cell]
    return begins


@njit(cache=True)
def _find_regions(values: Any, constants: Any, begins: Any, low: Any, scale: Any, regions: Any) -> None:
    above_all = 2 * len(constants)
    for i in range(len(values)):
        value = values[i]
        if value != value:  # noqa: PLR0124 - NaN, which is above all other numbers
            regions[i] = above_all
            continue
        cell = _cell_of(value, low, scale)
        left, end = begins[cell], begins[cell + 1]
        right = end
        while left < right:
            middle = (left + right) >> 1
            if constants[middle] < value:
                left = middle + 1
            else:
                right = middle
        regions[i] = 2 * left + 1 if left < end and constants[left] == value else 2 * left


@njit(cache=True)
def _add_bits(word: Any, regions: Any, bits: Any) -> None:
    for i in range(len(word)):
        word[i] |= bits[regions[i]]
