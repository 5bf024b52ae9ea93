"""Random programs find planted bugs of the control plane: what they do not find, they do not guard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from dovetail.engine.control import control_plane
from dovetail.engine.control.changelog import Change, Changelog
from dovetail.engine.control.control_plane import ControlPlane
from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.planning.planner import Given, Made, Planner
from dovetail.engine.state import EngineState
from tests.support.control.runs import failure_of_program, run_program
from tests.support.control.steps import random_program

PROGRAMS = 40
ENOUGH = 5

begin_changelog = Changelog.__init__
changes_after = Changelog.after
apply_change = ControlPlane._changed
apply_all = ControlPlane.applied
make_plan = Planner.plan


def forgets_requests_at_a_restart(self: Changelog, root: Path, **options: Any) -> None:
    begin_changelog(self, root, **options)
    self._by_request = {}


def applies_one_change_a_batch(self: Changelog, sequence: int) -> tuple[Change, ...]:
    return changes_after(self, sequence)[:1]


def goes_on_with_replaced_queries(
    self: ControlPlane, state: EngineState, by_id: Mapping[str, QueryRecord], change: Change, batch: int
) -> list[QueryRecord]:
    made = apply_change(self, state, by_id, change, batch)
    return made[1:] if change.replaces else made


def answers_dropped_queries_a_batch_longer(self: Planner, given: Given) -> Made:
    """Their records are right, only their answers are not."""
    state, running = given.state, self.running
    dropped = {each.id for each in state.registry.records if each.dropped_batch == state.batch != each.created_batch}
    longer = tuple(live for live in (running.asked if running else ()) if live.id in dropped)
    return make_plan(self, replace(given, queries=(*given.queries, *longer)))


def forgets_how_far_it_came(self: ControlPlane, state: EngineState, batch: int) -> EngineState:
    return replace(apply_all(self, state, batch), change_sequence=state.change_sequence)


def is_always_complete(*_known: Any) -> int:
    return 0


@pytest.mark.parametrize(
    ("owner", "name", "bug"),
    [
        (Changelog, "__init__", forgets_requests_at_a_restart),
        (Changelog, "after", applies_one_change_a_batch),
        (ControlPlane, "_changed", goes_on_with_replaced_queries),
        (Planner, "plan", answers_dropped_queries_a_batch_longer),
        (ControlPlane, "applied", forgets_how_far_it_came),
        (control_plane, "complete_from", is_always_complete),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, bug: Callable[..., object]
) -> None:
    monkeypatch.setattr(owner, name, bug)
    found = (failure_of_program(random_program(seed)) for seed in range(PROGRAMS))
    assert next(filter(None, found)) == "CaseFailed"


def test_new_queries_of_random_programs_use_what_is_stored() -> None:
    """A query that is complete from its creation only would answer no wrong row, but too few."""
    lived = (query for seed in range(PROGRAMS) for query in run_program(random_program(seed)))
    reaching_back = (query for query in lived if query.created and query.complete_from < query.created)
    assert len(list(islice(reaching_back, ENOUGH))) == ENOUGH
