"""Two queries, eight tuples a side, two or three partitions, as in SASPAR's Figures 1 and 2: the exact program finds
the optimum that exhaustive search finds, and the engine ships exactly the rows that the model says, always.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from dovetail.kernels.match.hash_keys import group_of_codes, hash_keys
from dovetail.optimizer.placement.cost import cost
from dovetail.optimizer.placement.problem import Cell, PartitionByGroup, PlacedStream, PlacementCosts, PlacementProblem
from dovetail.optimizer.placement.solvers.hypergraph import build_hypergraph
from dovetail.optimizer.placement.solvers.mip import solve_mip
from dovetail.optimizer.policies import GivenPolicies
from dovetail.plan.key_classes import key_classes
from dovetail.plan.placement import Placement, Placements, even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog
from dovetail.testing.local_session import LocalSession
from tests.support.oracles.placement import best_placement, random_placement

GROUPS = 4
ROWS = 8
SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("v", pa.int64())])
SQL_BY_NAME = {
    "by_x": "SELECT s.v AS sv, t.v AS tv FROM s JOIN t ON s.x = t.x",
    "by_y": "SELECT s.v AS sv, u.v AS uv FROM s JOIN u ON s.y = u.y",
}
KEYS_BY_STREAM = {"s": ("x", "y"), "t": ("x",), "u": ("y",)}
CLASS_BY_KEY = {"x": 0, "y": 1}


def tables_of(chance: Random) -> dict[str, pa.Table]:
    """Keys that go together now and then: y follows x in most rows; some are NULL."""
    tables = {}
    for name in KEYS_BY_STREAM:
        rows = []
        for v in range(ROWS):
            x = chance.choice((None, 1, 2, 3, 4, 5, 6, 7, 8, 9))
            y = x if chance.random() < 0.6 else chance.choice((None, 1, 2, 3, 4, 5))
            rows.append({"x": x, "y": y, "v": v})
        tables[name] = pa.Table.from_pylist(rows, SCHEMA)
    return tables


def problem_of(tables: dict[str, pa.Table], partitions: int) -> PlacementProblem:
    streams = []
    for name, keys in KEYS_BY_STREAM.items():
        columns = [groups_of(tables[name].column(key).combine_chunks()) for key in keys]
        # A row without any key is no use's: it goes to one partition, whatever the placement.
        cells = Counter(groups for groups in zip(*columns, strict=True) if any(each is not None for each in groups))
        classes = tuple(CLASS_BY_KEY[key] for key in keys)
        streams.append(PlacedStream(name, classes, tuple(Cell(groups, rows) for groups, rows in cells.items())))
    return PlacementProblem(GROUPS, partitions, len(CLASS_BY_KEY), tuple(streams), PlacementCosts(1.0, 1.0))


def groups_of(column: pa.Array) -> list[int | None]:
    keys = hash_keys([column])
    valid = np.ones(len(column), np.bool_) if keys.valid_mask is None else keys.valid_mask
    groups = group_of_codes(keys.codes, GROUPS).tolist()
    return [group if is_valid else None for group, is_valid in zip(groups, valid.tolist(), strict=True)]


def optimum(problem: PlacementProblem) -> PartitionByGroup:
    nodes = build_hypergraph(problem)
    found = solve_mip(nodes.graph, nodes.parts(problem.even()), 60.0, 1e-6)
    assert found.is_optimal
    assert found.cost == pytest.approx(best_placement(problem)[1], abs=1e-6)
    return nodes.partition_by_group(found.parts)


def shipped_rows(
    folder: Path, tables: dict[str, pa.Table], partitions: int, placed: PartitionByGroup, copies: str = "partition"
) -> int:
    def choose(plan: SharedPlan, _stats: StatsCatalog, _running: Placements | None) -> Placements:
        placement_by_use = {}
        for key_class in key_classes(plan):
            number = CLASS_BY_KEY["x" if any("x" in index for _, index in key_class) else "y"]
            for use in key_class:
                placement_by_use[use] = Placement(placed[number], partitions)
        return Placements.of(even_placement(GROUPS, partitions), placement_by_use)

    session = LocalSession(
        folder,
        partitions=partitions,
        key_groups=GROUPS,
        exchange="rows",
        copies=copies,
        small_batch_rows=0,
    )
    session.engine.plans.follow(lambda _batch: GivenPolicies(placement=choose))
    for name in KEYS_BY_STREAM:
        session.create_stream(name, SCHEMA)
    for name, sql in SQL_BY_NAME.items():
        session.create_query(sql, name)
    session.push(tables, splits=2)
    assert session.progress is not None
    return int(session.progress["shipped"]["rows"])


def homeless_rows(tables: dict[str, pa.Table]) -> int:
    """Rows with NULL in all their keys: kept, but placed by none."""
    return sum(
        all(row[key] is None for key in keys)
        for name, keys in KEYS_BY_STREAM.items()
        for row in tables[name].to_pylist()
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_program_finds_the_optimum_and_the_engine_ships_what_the_model_says(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    partitions = chance.choice((2, 3))
    tables = tables_of(chance)
    problem = problem_of(tables, partitions)
    homeless = homeless_rows(tables)
    for number, placed in enumerate((optimum(problem), problem.even(), random_placement(problem, seed))):
        modelled = cost(problem, placed)
        shared = shipped_rows(tmp_path / f"shared{number}", tables, partitions, placed)
        assert shared == modelled.shipped_rows + homeless
        by_key = shipped_rows(tmp_path / f"key{number}", tables, partitions, placed, copies="key")
        assert by_key == modelled.unshared_rows + homeless
