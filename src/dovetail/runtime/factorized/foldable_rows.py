"""The side of a join that is folded: what any run of its rows counts and sums up to, prepared once (D4).

Rows of a stored bucket are prepared once per worker and serve every batch as long as the bucket lives; a bucket never
changes. Values are evaluated on all rows of the side, so one that fails may be of a row that meets nobody: the caller
then builds the joined rows instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.evaluate.evaluate import evaluate, evaluate_mask
from dovetail.kernels.fold.fold_runs import (
    Runs,
    TimeIntervals,
    find_runs,
    order_by_time,
    prefix_counts,
)
from dovetail.kernels.fold.prefix_sums import prefix_sums, sums_of_runs
from dovetail.kernels.fold.range_extremes import extremes_of_runs, find_extremes, order_keys
from dovetail.query.expression import Call, Column, Expression, all_of
from dovetail.query.types import BOOLEAN
from dovetail.runtime.derived import BatchClock, Derived

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
ColumnOf = Callable[[Column], pa.Array]
_VALUES, _VALID_BEFORE, _SUMS, _EXTREMES, _IS_MIXED = "values", "valid before", "sums", "extremes", "is mixed"


class FoldableRows:
    """Entries by code and, where there are `times`, by time; `rows[i]` is the row that entry i stands for."""

    def __init__(self, codes: U64, times: I64 | None, rows: npt.NDArray[Any], clock: BatchClock | None = None) -> None:
        """With the clock of a bucket, what is prepared for arguments that nobody asks for any more can be forgotten."""
        order = None if times is None else order_by_time(codes, times)
        self.codes = codes
        self.times = times if times is None or order is None else times[order]
        self.rows = rows if order is None else rows[order]
        self._derived = Derived(clock or BatchClock())

    def __len__(self) -> int:
        return len(self.codes)

    def prepare(self, expressions: Iterable[Expression], column_of: ColumnOf, timezone: str) -> None:
        """Evaluate what is not known yet; `column_of` gives the columns of `rows`."""
        for expression in expressions:
            make = partial(evaluate, expression, column_of, len(self), timezone=timezone)
            self._derived.of((_VALUES, expression), make)

    def forget_unused(self) -> None:
        self._derived.forget_unused()

    def runs(self, walked_codes: U64, intervals: TimeIntervals | None) -> Runs:
        return find_runs(walked_codes, self.codes, intervals, self.times)

    def counts(self, arguments: tuple[Expression, ...], runs: Runs) -> I64:
        """How many rows of each run have all arguments."""
        return self._of_valid(arguments, runs).lengths

    def sums(self, argument: Expression, runs: Runs) -> pa.ListArray:
        sums = self._derived.of((_SUMS, argument), lambda: prefix_sums(self._values(argument).drop_null()))
        return sums_of_runs(sums, self._of_valid((argument,), runs))

    def extremes(self, argument: Expression, runs: Runs, *, is_max: bool) -> pa.Array:
        """The smallest or the largest value of each run; NULL where it has none."""
        present = self._values(argument).drop_null()
        extremes = self._derived.of(
            (_EXTREMES, argument, is_max), lambda: find_extremes(order_keys(present, is_max=is_max))
        )
        places = extremes_of_runs(extremes, self._of_valid((argument,), runs))
        return present.take(pa.array(places, mask=places < 0))

    def mixes_keys(self, keys: tuple[Expression, ...]) -> bool:
        """Whether rows of one code have different keys: then a run is no answer. Codes of 64 bits hardly ever do."""

        def is_mixed() -> bool:
            columns = [self._values(key) for key in keys]
            neighbours = np.flatnonzero(self.codes[1:] == self.codes[:-1])
            befores = [column.take(pa.array(neighbours)) for column in columns]
            afters = [column.take(pa.array(neighbours + 1)) for column in columns]
            return not equal_keys(befores, afters, keys).all()

        return self._derived.of((_IS_MIXED, keys), is_mixed)

    def have_keys(self, keys: tuple[Expression, ...], walked_keys: Sequence[pa.Array], runs: Runs) -> Mask:
        """Which runs, none of them empty, have the key of their walked row. All rows of a run have one key."""
        first = pa.array(runs.begins)
        return equal_keys([self._values(key).take(first) for key in keys], walked_keys, keys)

    def _values(self, expression: Expression) -> pa.Array:
        return self._derived[_VALUES, expression]

    def _of_valid(self, arguments: tuple[Expression, ...], runs: Runs) -> Runs:
        """The runs among the rows that have all arguments."""
        before = self._derived.of(
            (_VALID_BEFORE, arguments), lambda: _valid_before([self._values(argument) for argument in arguments])
        )
        return runs if before is None else Runs(before[runs.begins], before[runs.ends])


def equal_keys(ones: Sequence[pa.Array], others: Sequence[pa.Array], keys: tuple[Expression, ...]) -> Mask:
    """Where keys of these types are equal as SQL sees it."""
    sides = {"one": ones, "other": others}
    tests = tuple(
        Call("eq", (Column("one", str(place), key.type), Column("other", str(place), key.type)), BOOLEAN)
        for place, key in enumerate(keys)
    )
    return evaluate_mask(all_of(tests), lambda column: sides[column.relation][int(column.name)], len(ones[0]))


def _valid_before(columns: list[pa.Array]) -> I64 | None:
    """How many rows before each have all columns; None if all rows do."""
    mask: Any = None
    for column in columns:
        if column.null_count:
            valid = np.asarray(pc.is_valid(column))
            mask = valid if mask is None else mask & valid
    return None if mask is None else prefix_counts(mask)
