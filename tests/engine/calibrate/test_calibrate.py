"""Counts are exact and fits are right; seconds are only seconds, so no test looks at how many."""

from __future__ import annotations

from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.calibrate.calibrate import KINDS, LEAST_ROUNDS, calibrate, fit_not_negative, fit_unit_costs
from dovetail.engine.calibrate.shapes import (
    CHAIN,
    CHECKS,
    FORKS,
    OTHER_PAIRS,
    PAIRS,
    REFUSED_PAIRS,
    SAME_PAIRS,
    SHAPES,
    STAR,
    PreparedShape,
    Rows,
    Run,
    Shape,
    WorkCount,
)
from dovetail.runtime.probe import mapped_bucket
from dovetail.stats.unit_costs import DEFAULT_UNIT_COSTS

# With one key alone every row meets every row.
NEW, STORED, LAST = Rows(10, 1), Rows(6, 1), Rows(4, 1)
PAIR_COUNT = 60


def count(root: Path, queries: tuple[str, ...], *, order: str = "st", keeps_pairs: bool = False, **stored: Rows) -> Run:
    prepared = PreparedShape(Shape("counted", queries, NEW, stored, order, keeps_pairs=keeps_pairs), root)
    try:
        return prepared.run()
    finally:
        prepared.close()


def counted(**counts: int) -> WorkCount:
    return WorkCount(**{**dict.fromkeys(KINDS, 0), "task": 1, **counts})


@pytest.mark.parametrize(
    ("queries", "stored", "expected"),
    [
        ((PAIRS,), {"s": STORED}, counted(probed=10, searched=10, found=60, built=60, node=1, file=1)),
        (
            (PAIRS,),
            {"s": replace(STORED, buckets=3)},
            counted(probed=10, searched=30, found=60, built=60, node=3, file=1),
        ),
        ((PAIRS, SAME_PAIRS), {"s": STORED}, counted(probed=10, searched=10, found=60, built=120, node=1, file=2)),
        (
            (CHAIN,),
            {"s": STORED, "t": LAST},
            counted(probed=70, searched=70, found=300, shipped=60, built=240, node=2, message=1, file=1, task=2),
        ),
        (
            (CHAIN,),
            {"s": STORED},
            counted(probed=70, searched=10, found=60, shipped=60, node=1, message=1, task=2),
        ),
        (
            (CHAIN,),
            {"s": replace(STORED, buckets=3), "t": replace(LAST, buckets=2)},
            counted(probed=70, searched=150, found=300, shipped=60, built=240, node=5, message=1, file=1, task=2),
        ),
        (
            (PAIRS, CHAIN),
            {"s": STORED, "t": LAST},
            counted(probed=70, searched=70, found=300, shipped=60, built=300, node=2, message=1, file=2, task=2),
        ),
        (
            FORKS,
            {"s": STORED},
            counted(probed=190, searched=10, found=60, shipped=180, node=1, message=3, task=2),
        ),
        # The refused pairs are found as well.
        (
            (OTHER_PAIRS, REFUSED_PAIRS),
            {"s": STORED},
            counted(probed=20, searched=20, found=120, built=60, node=2, file=1),
        ),
    ],
)
def test_work_is_counted_as_by_hand(
    tmp_path: Path, queries: tuple[str, ...], stored: dict[str, Rows], expected: WorkCount
) -> None:
    assert count(tmp_path, queries, **stored).counts == expected


@pytest.mark.parametrize(("queries", "index_count"), [(STAR[:1], 1), (STAR, 3)])
def test_kept_pairs_are_stored_once_and_indexed_by_each_key(
    tmp_path: Path, queries: tuple[str, ...], index_count: int
) -> None:
    counts = count(tmp_path, queries, order="ts", keeps_pairs=True, s=STORED).counts
    assert (counts.stored, counts.indexed) == (PAIR_COUNT, PAIR_COUNT * index_count)
    assert (counts.shipped, counts.built, counts.file) == (0, 0, 1)


def test_pairs_found_in_a_kept_join_are_tested(tmp_path: Path) -> None:
    shape = Shape("probed", (CHAIN,), NEW, {"r": LAST, "s": STORED}, start="t", keeps_pairs=True)
    prepared = PreparedShape(shape, tmp_path)
    counts = prepared.run().counts
    prepared.close()
    assert counts == counted(probed=10, searched=10, found=240, tested=240, built=240, node=1, file=1, task=2)


def test_runs_of_one_shape_count_alike_and_leave_no_files(tmp_path: Path) -> None:
    shape = Shape("again", (CHAIN,), NEW, {"s": STORED, "t": LAST}, keeps_pairs=True)
    prepared = PreparedShape(shape, tmp_path)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert prepared.run().counts == prepared.run().counts
    prepared.close()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("shape", [*SHAPES, *CHECKS], ids=lambda shape: shape.name)
def test_a_scaled_shape_finds_as_much_per_row(tmp_path: Path, shape: Shape) -> None:
    tmp_path.joinpath("half").mkdir()
    runs = []
    for share, root in ((0.02, tmp_path), (0.04, tmp_path / "half")):
        prepared = PreparedShape(shape.scaled(share), root)
        runs.append(prepared.run().counts)
        prepared.close()
    small, large = runs
    assert (small.node, small.task) == (large.node, large.task)
    # Chance decides how many of few pairs meet.
    if small.found > 1000:
        assert large.found / large.probed == pytest.approx(small.found / small.probed, rel=0.15)


def test_the_shapes_tell_all_kinds_of_work_apart(tmp_path: Path) -> None:
    counts = []
    for number, shape in enumerate(SHAPES):
        root = tmp_path / str(number)
        root.mkdir()
        prepared = PreparedShape(shape.scaled(0.05), root)
        counts.append(astuple(prepared.run().counts))
        prepared.close()
    matrix = np.array(counts, np.float64)
    assert len(SHAPES) > len(KINDS)
    assert np.linalg.matrix_rank(matrix / np.linalg.norm(matrix, axis=0)) == len(KINDS)


def test_names_of_shapes_differ() -> None:
    names = [shape.name for shape in (*SHAPES, *CHECKS)]
    assert len(set(names)) == len(names)


def made_up_runs(units: dict[str, float]) -> dict[str, Run]:
    random = np.random.default_rng(5)
    runs = {}
    for number in range(20):
        counts = WorkCount(*map(int, random.integers(0, 1_000_000, len(KINDS))))
        runs[str(number)] = Run(counts, sum(units[kind] * getattr(counts, kind) for kind in KINDS))
    return runs


def test_costs_that_explain_everything_are_found_again() -> None:
    units = {**DEFAULT_UNIT_COSTS.to_json(), "task": 0.002}
    fitted = fit_unit_costs(made_up_runs(units))
    assert fitted.units.to_json() == pytest.approx(DEFAULT_UNIT_COSTS.to_json())
    assert fitted.task_s == pytest.approx(0.002)
    assert (fitted.explained_share, fitted.largest_error) == pytest.approx((1.0, 0.0), abs=1e-6)


def test_a_run_that_fits_nothing_lowers_the_explained_share() -> None:
    runs = made_up_runs({**DEFAULT_UNIT_COSTS.to_json(), "task": 0.0})
    runs["0"] = replace(runs["0"], seconds=runs["0"].seconds * 5)
    fitted = fit_unit_costs(runs)
    assert fitted.largest_error > 0.2
    assert fitted.explained_share < 0.99


@pytest.mark.parametrize("seed", range(10))
def test_no_other_point_without_negatives_is_nearer(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix, target = random.normal(size=(7, 4)), random.normal(size=7)
    found = fit_not_negative(matrix, target)
    assert (found >= 0).all()
    least = np.sum((matrix @ found - target) ** 2)
    for _ in range(2000):
        other = np.maximum(found + random.normal(scale=random.choice([0.01, 0.5]), size=4), 0)
        assert np.sum((matrix @ other - target) ** 2) >= least - 1e-12


def test_calibrate_runs_shapes_and_checks_and_tells_how_far_it_is() -> None:
    shares: list[float] = []
    shapes, checks = [shape.scaled(0.01) for shape in SHAPES], [shape.scaled(0.01) for shape in CHECKS]
    mapped = set(mapped_bucket._mapped_buckets)
    measured = calibrate(0.0, shapes=shapes, checks=checks, on_round=shares.append)
    assert [fit.name for fit in measured.fits] == [shape.name for shape in SHAPES]
    assert [fit.name for fit in measured.checks] == [shape.name for shape in CHECKS]
    assert measured.rounds == LEAST_ROUNDS == len(shares)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert set(mapped_bucket._mapped_buckets) == mapped
