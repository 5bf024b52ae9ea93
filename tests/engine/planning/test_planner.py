"""One draft, one comparison with the running plan, and a memory that looking leaves as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.core.errors import InternalError
from dovetail.engine.planning.compare_plans import Because, NewEpoch, SamePlan, Unchanged, compare_plans
from dovetail.optimizer.draft import Draft
from dovetail.optimizer.passes import derive_stores
from dovetail.stats.catalog import StatsCatalog
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
ROWS = pa.table({"k": [1, 2, 2], "v": [1, 2, 3]}, SCHEMA)
SQL = "SELECT a.v FROM a JOIN b ON a.k = b.k"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[LocalSession]:
    with LocalSession(tmp_path) as opened:
        for name in "ab":
            opened.create_stream(name, SCHEMA)
        opened.create_query(SQL, "first")
        opened.push({"a": ROWS, "b": ROWS})
        yield opened


def draft_of(session: LocalSession) -> Draft:
    """As a batch left it, held against a plan below."""
    planned = session.engine.plans.planned()
    return Draft(
        planned.asked,
        {},
        StatsCatalog(),
        queries=planned.queries,
        decisions=planned.decisions,
        stats=planned.stats,
        routings=planned.routings,
        plan=planned.drawn,
    )


def test_what_runs_goes_on(session: LocalSession) -> None:
    running = session.engine.plans.running
    assert running is not None
    assert compare_plans(running, draft_of(session), Because()) == Unchanged(running)
    assert session.engine.plans.planned() is running


def test_other_statistics_with_the_same_plan_are_no_new_epoch(session: LocalSession) -> None:
    running, draft = session.engine.plans.running, draft_of(session)
    assert running is not None
    moved = Draft(
        draft.asked, {}, draft.now, decisions=draft.decisions, stats=StatsCatalog(), routings=(), plan=draft.plan
    )
    assert compare_plans(running, moved, Because()) == SamePlan(running)


def test_a_new_epoch_has_reasons_but_for_the_first(session: LocalSession) -> None:
    assert compare_plans(None, draft_of(session), Because()) == NewEpoch()
    running = session.engine.plans.running
    session.create_query("SELECT b.v FROM a JOIN b ON a.v = b.v", "second")
    assert compare_plans(running, draft_of(session), Because()) == NewEpoch(("query second was created",))
    assert session.engine.plans.planned().reasons == ("query second was created",)


def test_a_preview_is_not_remembered(session: LocalSession) -> None:
    before, traces = session.engine.plans.planned(), session.engine.plans.traces
    _, previewed = session.engine.plans.previewed("SELECT b.v FROM a JOIN b ON a.v = b.v")
    assert len(previewed.asked) == 2
    assert session.engine.plans.traces == traces
    assert session.engine.plans.planned() is before


def test_a_trace_tells_of_every_pass(session: LocalSession) -> None:
    assert "share probe prefixes: 2 trees of 2 steps" in session.explain(trace=True)
    assert "how the plan was made" not in session.explain()


def test_a_plan_that_breaks_a_promise_names_the_pass_and_the_query(
    session: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = derive_stores.StorePlan

    def forgetful(**given: object) -> object:
        return right(**{**given, "selections": ()})  # type: ignore[arg-type]

    monkeypatch.setattr(derive_stores, "StorePlan", forgetful)
    session.create_query("SELECT b.v FROM a JOIN b ON a.v = b.v WHERE a.k > 1", "second")
    with pytest.raises(InternalError, match="derive_stores: no plan for query"):
        session.engine.plans.planned()
