"""Joined rows into partial groups: weighted rows and folded parts give what the rows that they stand for give."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.errors import EvaluationError
from dovetail.kernels.fold.exact_sum import fold_values
from dovetail.kernels.fold.read_sums import doubles_of
from dovetail.plan.group_plan import ROWS, Fold, GroupPlan, GroupUser, PartialColumn
from dovetail.query.aggregation import Aggregate, AggregateFunction
from dovetail.query.expression import TRUE, Column
from dovetail.query.join_query import OutputColumn
from dovetail.query.types import BIGINT, DOUBLE
from dovetail.runtime.groups.fold_rows import FoldedRows, JoinedRows, fold_rows

COUNT = PartialColumn(Fold.COUNT, ("x",))
SUM = PartialColumn(Fold.SUM, ("x",), DOUBLE)
SMALLEST = PartialColumn(Fold.MIN, ("x",), DOUBLE)
COLUMNS = (ROWS, COUNT, SUM, SMALLEST)
USER = GroupUser(
    "q#1",
    0,
    (Aggregate(AggregateFunction.SUM, (Column("joined", "x", DOUBLE),), DOUBLE),),
    TRUE,
    (OutputColumn("s", Column("group", "agg0", DOUBLE)),),
    is_updating=True,
)
GROUP = GroupPlan("groups/x", (BIGINT,), COLUMNS, (), (), (USER,))


def found(folded: FoldedRows) -> dict[object, tuple[object, ...]]:
    rows = folded.rows_by_table[GROUP.id]
    sums = doubles_of(rows.columns[SUM.name]).tolist()
    columns = [rows.columns[name].to_pylist() for name in (ROWS.name, COUNT.name, SMALLEST.name)]
    return {key: values for key, *values in zip(rows.keys[0].to_pylist(), sums, *columns, strict=True)}  # type: ignore[misc]


def joined(
    keys: list[object],
    values: list[object],
    weights: npt.NDArray[np.int64] | None = None,
    folded: dict[str, pa.Array] | None = None,
) -> JoinedRows:
    arrays = {"key0": pa.array(keys, pa.int64()), "x": pa.array(values, pa.float64())}
    return JoinedRows(len(keys), arrays.__getitem__, weights, folded or {})


rows = st.lists(
    st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from([0.1, 1e20, -3.5]), st.integers(1, 4)),
    min_size=1,
    max_size=20,
)


@given(rows)
def test_a_weighted_row_counts_as_often_as_it_says(rows: list[tuple[int, float, int]]) -> None:
    keys, values, weights = map(list, zip(*rows, strict=True))
    repeated = [(key, value) for key, value, weight in rows for _ in range(weight)]
    expected = found(fold_rows(GROUP, joined([key for key, _ in repeated], [value for _, value in repeated])))
    assert found(fold_rows(GROUP, joined(keys, values, np.array(weights)))) == expected


@given(rows)
def test_what_is_folded_already_is_not_folded_again(rows: list[tuple[int, float, int]]) -> None:
    keys, values, weights = map(list, zip(*rows, strict=True))
    repeated = [(key, value) for key, value, weight in rows for _ in range(weight)]
    expected = found(fold_rows(GROUP, joined([key for key, _ in repeated], [value for _, value in repeated])))
    owners = np.repeat(np.arange(len(rows)), weights)
    parts = {
        SUM.name: fold_values(pa.array([value for _, value in repeated], pa.float64()), owners, len(rows)),
        COUNT.name: pa.array([0 if value is None else weight for value, weight in zip(values, weights, strict=True)]),
        SMALLEST.name: pa.array(values, pa.float64()),
    }
    given_parts = joined(keys, [None] * len(rows), np.array(weights), parts)
    assert found(fold_rows(GROUP, given_parts)) == expected


def test_an_argument_that_fails_leaves_the_other_columns() -> None:
    def values_of(name: str) -> pa.Array:
        if name == "x":
            raise EvaluationError("division by zero")
        return pa.array([1, 1, None])

    folded = fold_rows(GROUP, JoinedRows(3, values_of))
    assert set(folded.failed) == {COUNT.name, SUM.name, SMALLEST.name}
    assert folded.rows_by_table[GROUP.id].columns[ROWS.name].to_pylist() == [2, 1]
