"""The first of a hundred random scenarios that fails: what `make mutants` runs where scenarios are to find a bug.

    python -m tools.first_failure KIND ...     (`any`: all kinds in their shares)

Ends with 1 if one fails, with 0 if none does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.support.generators.scenarios import KINDS, random_scenario
from tests.support.keep_failures import failure_of
from tests.support.planted_bugs import ENOUGH


def main(given: Sequence[str]) -> int:
    kinds = KINDS if list(given) == ["any"] else tuple(given)
    for seed in range(ENOUGH):
        if (failure := failure_of(random_scenario(seed, kinds))) is not None:
            print(f"scenario {seed} of {', '.join(given)}: {failure}")
            return 1
    print(f"none of {ENOUGH} scenarios fails")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
