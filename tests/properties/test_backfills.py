"""Random cases whose queries are backfilled: in the end their answers are batch SQL over all rows, each once.

A case has up to six queries.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from tests.support.faults.backfill_runs import (
    CALM,
    ROUGH,
    BackfillDriver,
    BackfillFaults,
    backfill_case,
    check_backfills,
)
from tests.support.generators.cases import CHAINS, DEFAULT_LIMITS, LATE_SIBLINGS, LONG_RUNS, CaseLimits
from tests.support.keep_failures import seeds_of

SHARE = 0.005
LIMITS = {"everything": DEFAULT_LIMITS, "long": LONG_RUNS, "siblings": LATE_SIBLINGS, "chains": CHAINS}


def ends_of(limits: CaseLimits, faults: BackfillFaults, seeds: Iterable[int]) -> Counter[str]:
    """Checks every case; how many backfills ended how."""
    ends: Counter[str] = Counter()
    for seed in seeds:
        case = backfill_case(seed, limits)
        with tempfile.TemporaryDirectory(prefix="dovetail-backfill-") as folder:
            driver = BackfillDriver(case, Path(folder), Random(seed), faults)
            try:
                ends += check_backfills(case, driver.run())
            except Exception as error:
                raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
            ends["refused"] += len(driver.refused)
    return ends


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_all_that_was_before_is_answered_once(limits: CaseLimits) -> None:
    """One may need a batch more than a short case has; that most come to their end is the last test's matter."""
    ends = ends_of(limits, CALM, seeds_of(0, 1, SHARE))
    assert ends["failed"] == 0
    assert ends["running"] <= 1


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_crashes_restarts_and_cancels_change_no_answer_that_is_there(limits: CaseLimits) -> None:
    assert ends_of(limits, ROUGH, seeds_of(0, 1, SHARE))["failed"] == 0


@pytest.mark.parametrize("faults", [CALM, ROUGH], ids=["calm", "rough"])
def test_most_backfills_come_to_their_end(faults: BackfillFaults) -> None:
    """Else the tests above would show little."""
    ends = ends_of(DEFAULT_LIMITS, faults, range(4))
    assert ends["done"] > ends["cancelled"] + ends["running"]
