"""The records refuse what makes no sense, and the cost is what one counts by hand."""

from __future__ import annotations

import math

import pytest

from dovetail.core.errors import QueryError
from dovetail.optimizer.placement.cost import cost
from dovetail.optimizer.placement.problem import Cell, PlacedStream, PlacementCosts, PlacementProblem

COSTS = PlacementCosts(ship_s=1.0, process_s=1.0)
STREAM = PlacedStream("s", (0, 1), (Cell((0, 1), 3.0), Cell((None, 0), 2.0)))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Cell((0,), -1.0),
        lambda: Cell((0,), math.nan),
        lambda: PlacedStream("s", (0,), (Cell((0, 1), 1.0),)),
        lambda: PlacedStream("s", (0,), (), row_weight=-1.0),
        lambda: PlacementCosts(ship_s=-1.0, process_s=1.0),
        lambda: PlacementCosts(ship_s=1.0, process_s=math.inf),
        lambda: PlacementCosts(ship_s=1.0, process_s=1.0, local_share=1.5),
        lambda: PlacementCosts(ship_s=1.0, process_s=1.0, senders=0),
        lambda: PlacementCosts(ship_s=1.0, process_s=1.0, load_of="none"),  # type: ignore[arg-type]
        lambda: PlacementProblem(0, 1, 1, (), COSTS),
        lambda: PlacementProblem(2, 2, 1, (STREAM,), COSTS),
        lambda: PlacementProblem(1, 2, 2, (STREAM,), COSTS),
        lambda: PlacementProblem(2, 2, 2, (STREAM, STREAM), COSTS),
        lambda: cost(PlacementProblem(2, 2, 2, (STREAM,), COSTS), ((0, 1),)),
        lambda: cost(PlacementProblem(2, 2, 2, (STREAM,), COSTS), ((0, 1), (0, 2))),
    ],
)
def test_wrong_input_is_refused_with_what_to_write_instead(wrong: object) -> None:
    with pytest.raises(QueryError, match="instead: "):
        wrong()  # type: ignore[operator]


def test_tuple_is_shipped_once_to_each_partition_and_worked_on_once_per_use() -> None:
    problem = PlacementProblem(2, 2, 2, (STREAM,), PlacementCosts(ship_s=2.0, process_s=0.5))
    apart = cost(problem, ((0, 0), (0, 1)))
    assert (apart.shipped_rows, apart.unshared_rows, apart.loads) == (3 * 2 + 2, 8, (5.0, 3.0))
    assert apart.seconds == 2.0 * 8 + 0.5 * 5
    together = cost(problem, ((0, 0), (1, 0)))
    assert (together.shipped_rows, together.loads) == (3 + 2, (6.0, 2.0))
    assert together.imbalance == 1.5


def test_copies_within_a_node_and_several_senders_make_shipping_cheaper() -> None:
    costs = PlacementCosts(ship_s=4.0, process_s=0.0, local_s=1.0, local_share=0.25, senders=2)
    problem = PlacementProblem(1, 1, 1, (PlacedStream("s", (0,), (Cell((0,), 10.0),), row_weight=2.0),), costs)
    assert cost(problem, ((0,),)).seconds == 10 * 2 * (0.75 * 4 + 0.25 * 1) / 2


def test_slowest_partition_counts_over_all_streams_or_of_each() -> None:
    streams = (PlacedStream("s", (0,), (Cell((0,), 3.0),)), PlacedStream("t", (0,), (Cell((1,), 5.0),)))
    for load_of, seconds in (("all streams", 5.0), ("each stream", 8.0)):
        costs = PlacementCosts(ship_s=0.0, process_s=1.0, load_of=load_of)  # type: ignore[arg-type]
        assert cost(PlacementProblem(2, 2, 1, streams, costs), ((0, 1),)).seconds == seconds


def test_even_placement_is_the_engines() -> None:
    assert PlacementProblem(5, 2, 2, (), COSTS).even() == ((0, 0, 0, 1, 1),) * 2
    assert cost(PlacementProblem(5, 2, 2, (), COSTS), ((0,) * 5,) * 2).imbalance == 1.0
