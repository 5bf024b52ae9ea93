"""Scenarios of every kind, so that what Numba compiles is compiled, once, and kept beside the sources.

    python -m tools.compile_kernels rows|rest

`make test` runs both at once in a fresh clone, before its workers: each of them would compile the same kernels.
"""

from __future__ import annotations

import logging
import sys

from dovetail.optimizer.placement.solvers.search import compile_moves
from tests.support.generators.scenarios import MAKERS, ROWS, random_scenario
from tests.support.keep_failures import failure_of

SCENARIOS_A_KIND = 3


def main(part: str) -> None:
    logging.disable()
    for kind, (about, _) in MAKERS.items():
        if (about == ROWS) == (part == "rows"):
            for seed in range(SCENARIOS_A_KIND):
                # Whether it holds is for tests to say.
                failure_of(random_scenario(seed, (kind,)))
    if part == "rest":
        compile_moves()


if __name__ == "__main__":
    main(sys.argv[1])
