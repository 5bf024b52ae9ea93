"""Random cases whose queries are backfilled: in the end their answers are batch SQL over all rows, each once.

DOVETAIL_CASES sets how many, DOVETAIL_SEED where they begin. A case has up to six queries.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
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

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600")) // 100
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
LIMITS = {"everything": DEFAULT_LIMITS, "long": LONG_RUNS, "siblings": LATE_SIBLINGS, "chains": CHAINS}


def ends_of(limits: CaseLimits, faults: BackfillFaults) -> Counter[str]:
    """Checks every case; how many backfills ended how."""
    ends: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + CASE_COUNT):
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
    ends = ends_of(limits, CALM)
    assert ends["failed"] == ends["running"] == 0
    assert ends["done"] > ends["cancelled"]


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_crashes_restarts_and_cancels_change_no_answer_that_is_there(limits: CaseLimits) -> None:
    ends = ends_of(limits, ROUGH)
    assert ends["failed"] == 0
    assert ends["done"] > ends["running"]
