"""The suite `materialize` in its smallest form, and the data it runs on."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from benchmarks.measure import Steps
from benchmarks.options import BenchOptions
from benchmarks.planners import PLANNERS
from benchmarks.suites import materialize
from benchmarks.suites.materialize import CHAINS, TPCH_JOINS, TREES, chain_case
from dovetail.engine.options import make_options


def _run() -> dict[str, Any]:
    options = BenchOptions(quick=True, cores=1, rows=200, scale=0.001)
    return materialize.run(options, Steps(Console(file=StringIO())))


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    """Of two joins, which show what all of them do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(materialize, "TPCH_JOINS", {"Q3": TPCH_JOINS["Q3"]})
        patch.setattr(materialize, "CHAINS", {"MLM": CHAINS["MLM"]})
        return _run()


@pytest.mark.slow
def test_every_join_has_the_right_answer_by_every_tree() -> None:
    figures = _run()
    assert list(figures["cases"]) == ["Q2", "Q3", "Q5", "LLLL", "MMM", "MLM"]
    assert figures["results_equal"]


def test_every_tree_has_its_figures_and_the_right_answer(figures: dict[str, Any]) -> None:
    assert figures["results_equal"]
    for case in figures["cases"].values():
        for tree in TREES:
            assert {"rows_shipped", "rows_stored", "seconds"} <= case[tree].keys()


def test_a_flat_tree_stores_the_input_and_a_left_deep_one_more(figures: dict[str, Any]) -> None:
    for case in figures["cases"].values():
        assert case["flat"]["rows_stored"] == case["rows"] < case["left_deep"]["rows_stored"]


def test_a_left_deep_tree_ships_less_where_intermediates_are_small(figures: dict[str, Any]) -> None:
    case = figures["cases"]["Q3"]
    assert case["left_deep"]["rows_shipped"] < case["flat"]["rows_shipped"]


@pytest.mark.parametrize("name", list(CHAINS))
def test_a_chain_s_rows_find_as_many_partners_as_its_letters_say(name: str) -> None:
    case = chain_case(name, CHAINS[name], rows=20_000, batch_count=3, seed=1)
    tables = {stream: pa.concat_tables(batches) for stream, batches in case.batches_by_stream.items()}
    for hop, (a, b) in enumerate(zip(tables, list(tables)[1:], strict=False)):
        pairs = tables[a].join(tables[b], f"x{hop}", join_type="inner", right_suffix="_b").num_rows
        assert pairs == pytest.approx(20_000 * CHAINS[name][hop], rel=0.3)


def test_streams_are_named_in_the_order_of_the_left_deep_tree_and_each_joins_those_before_it() -> None:
    for join in TPCH_JOINS.values():
        for place in range(1, len(join.tables)):
            before, table = set(join.tables[:place]), join.tables[place]
            pairs = [{side.split(".")[0] for side in sides} for sides in join.joins]
            assert any(table in pair and pair & before for pair in pairs)


@pytest.mark.parametrize("planner", list(PLANNERS))
def test_every_planner_s_options_are_the_engine_s(planner: str) -> None:
    make_options(**PLANNERS[planner])
