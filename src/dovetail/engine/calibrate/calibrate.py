"""Unit costs of this machine: run every shape several times, then find the prices that explain the seconds best.

The best of several runs counts: whatever else the machine does makes a run longer, hardly ever shorter. Errors count
relative to each shape's seconds, so that a short shape says as much as a long one.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, astuple, dataclass, fields, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dovetail.engine.calibrate.shapes import CHECKS, SHAPES, PreparedShape, Run, Shape, WorkCount
from dovetail.stats.unit_costs import UnitCosts

LEAST_ROUNDS = 3
"""The first compiles kernels and warms files and memory; of two more the better one counts."""

F64 = npt.NDArray[np.float64]
KINDS = tuple(entry.name for entry in fields(WorkCount))
OnRound = Callable[[float], None]
"""Called after every round of all shapes with the share of the time that is spent, 0 to 1."""


@dataclass(frozen=True)
class ShapeFit:
    """What a shape took, and what the unit costs say it takes."""

    name: str
    counts: WorkCount
    measured_s: float
    modelled_s: float

    @property
    def relative_error(self) -> float:
        return self.modelled_s / self.measured_s - 1


@dataclass(frozen=True)
class Calibration:
    """`task_s` is what a task of a hop costs without any work: every plan of as many hops pays it.

    The unit costs were chosen for `fits` and not for `checks`, so only the latter test them.
    """

    units: UnitCosts
    task_s: float
    fits: tuple[ShapeFit, ...]
    checks: tuple[ShapeFit, ...] = ()
    rounds: int = 1

    def explain(self, name: str, run: Run) -> ShapeFit:
        price_by_kind = {**self.units.to_json(), "task": self.task_s}
        modelled_s = sum(count * price_by_kind[kind] for kind, count in asdict(run.counts).items())
        return ShapeFit(name, run.counts, run.seconds, modelled_s)

    @property
    def largest_error(self) -> float:
        return max(abs(fit.relative_error) for fit in self.fits)

    @property
    def largest_check_error(self) -> float:
        return max((abs(fit.relative_error) for fit in self.checks), default=0.0)

    @property
    def explained_share(self) -> float:
        """R²: of the shapes' differences in seconds, the share that the model reproduces."""
        measured = np.array([fit.measured_s for fit in self.fits])
        missed = measured - np.array([fit.modelled_s for fit in self.fits])
        spread = float(np.sum((measured - measured.mean()) ** 2))
        return 1 - float(np.sum(missed**2)) / spread if spread else 1.0


def calibrate(
    budget_s: float = 10.0,
    *,
    shapes: Sequence[Shape] = SHAPES,
    checks: Sequence[Shape] = CHECKS,
    on_round: OnRound = lambda _share: None,
) -> Calibration:
    """Measure for about `budget_s` seconds, and as long as a few rounds take in any case."""
    began = time.perf_counter()
    best: dict[str, Run] = {}
    rounds = 0
    is_over = False
    with _prepared([*shapes, *checks]) as ready:
        while not is_over:
            for prepared in ready:
                run = prepared.run()
                known = best.setdefault(prepared.shape.name, run)
                best[prepared.shape.name] = min(run, known, key=lambda each: each.seconds)
            rounds += 1
            spent_s = time.perf_counter() - began
            is_over = rounds >= LEAST_ROUNDS and spent_s * (rounds + 1) / rounds > budget_s
            on_round(1.0 if is_over else min(spent_s / max(spent_s, budget_s), rounds / LEAST_ROUNDS, 0.99))
    fitted = fit_unit_costs({shape.name: best[shape.name] for shape in shapes})
    missed = tuple(fitted.explain(shape.name, best[shape.name]) for shape in checks)
    return replace(fitted, checks=missed, rounds=rounds)


@contextmanager
def _prepared(shapes: Sequence[Shape]) -> Iterator[list[PreparedShape]]:
    with tempfile.TemporaryDirectory(prefix="dovetail-calibrate-") as folder, ExitStack() as stack:
        ready = []
        for number, shape in enumerate(shapes):
            root = Path(folder, str(number))
            root.mkdir()
            ready.append(PreparedShape(shape, root))
            stack.callback(ready[-1].close)
        yield ready


def fit_unit_costs(run_by_shape: Mapping[str, Run]) -> Calibration:
    """The unit costs, none negative, with the least sum of squared relative errors."""
    seconds = np.array([run.seconds for run in run_by_shape.values()])
    counts = np.array([astuple(run.counts) for run in run_by_shape.values()], np.float64)
    prices = fit_not_negative(counts / seconds[:, None], np.ones(len(seconds)))
    price_by_kind = dict(zip(KINDS, prices.tolist(), strict=True))
    task_s = price_by_kind.pop("task")
    fitted = Calibration(UnitCosts(**price_by_kind), task_s, ())
    return replace(fitted, fits=tuple(fitted.explain(name, run) for name, run in run_by_shape.items()))


def fit_not_negative(matrix: F64, target: F64) -> F64:
    """The x without negative entries for which `matrix @ x` is nearest to `target`.

    Where it is positive it is the plain least squares solution, so trying every set of positive entries finds it;
    there are few columns.
    """
    width = matrix.shape[1]
    best, least = np.zeros(width), float(np.sum(target**2))
    # Counts of rows and of tasks differ by many orders of magnitude.
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    for size in range(1, width + 1):
        for columns in map(list, combinations(range(width), size)):
            solved = np.linalg.lstsq(matrix[:, columns] / scale[columns], target, rcond=None)[0] / scale[columns]
            missed = float(np.sum((matrix[:, columns] @ solved - target) ** 2))
            if (solved >= 0).all() and missed < least:
                best = np.zeros(width)
                best[columns], least = solved, missed
    return best
