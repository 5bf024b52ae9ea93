"""A kept join that explodes is given up. That who passes a limit stops, and nobody else, is drawn in scenarios
(`test_scenarios.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from dovetail.engine.admission.query_limits import passed_limits
from dovetail.optimizer.intermediates.kept import KeptIntermediate, maintained_by
from dovetail.plan.fill import filled_by
from dovetail.plan.query_limits import BatchLimits, QueryLimits
from tests.support.generators.chain_cases import random_fill_case
from tests.support.keep_failures import check_seeds
from tests.support.scenario import Scenario


def test_a_kept_join_that_passes_its_limit_is_given_up_and_nobody_misses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given_up = 0

    def only_for_kept_joins(_running: object, kept: Iterable[KeptIntermediate], *_others: object) -> BatchLimits:
        names = [name(each) for each in kept for name in (_maintained, _filled)]
        return BatchLimits(own_by_query=dict.fromkeys(names, QueryLimits(pairs=4)))

    def counted(*given: Any) -> dict[str, str]:
        nonlocal given_up
        passed = passed_limits(*given)
        given_up += len(passed)
        return passed

    monkeypatch.setattr("dovetail.engine.batch.make_task.batch_limits", only_for_kept_joins)
    monkeypatch.setattr("dovetail.engine.batch.next_state.passed_limits", counted)
    check_seeds(range(4), lambda seed: Scenario(random_fill_case(seed)))
    assert given_up


def _maintained(kept: KeptIntermediate) -> str:
    return maintained_by(kept.intermediate)


def _filled(kept: KeptIntermediate) -> str:
    return filled_by(kept.intermediate.id)
