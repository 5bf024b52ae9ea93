"""What follows a commit cannot fail the batch: whatever breaks there, answers go on, and progress tells."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from dovetail.engine.admission.admission import Admission
from dovetail.engine.backfill.backfills import Backfills
from dovetail.engine.batch import tell_batch
from dovetail.engine.control.control_plane import ControlPlane
from dovetail.engine.planning.elastic_units import ElasticUnits
from dovetail.engine.planning.key_group_placer import KeyGroupPlacer
from dovetail.engine.planning.planner import Planner
from dovetail.store.commit import Committed
from dovetail.testing.faults import SimulatedCrash
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

RowsOf = Callable[[LocalSession, str], list[tuple[Any, ...]]]
JOIN = "SELECT a.k, a.v, b.v FROM a JOIN b ON a.k = b.k"
KEPT_FOR_A_SECOND = f"{JOIN} AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 1 SECOND"
ELASTIC = {"elastic": True, "max_partitions": 4}


def fails(*_given: Any, **_named: Any) -> NoReturn:
    raise OSError("no more")


@pytest.mark.parametrize(
    ("owner", "name", "what", "options"),
    [
        (tell_batch, "take_figures", "taking its figures", {}),
        (KeyGroupPlacer, "note_batch", "judging its placement", {"exchange": "rows"}),
        (ElasticUnits, "note_batch", "judging its units", ELASTIC),
        (Planner, "note_committed", "noting its plan", {}),
        (ControlPlane, "forget", "forgetting what is old", {}),
        (Admission, "forget_others", "forgetting what is old", {}),
        (Backfills, "follow", "following its backfills", {}),
        (Committed, "clean_up", "removing dead files", {}),
    ],
    ids=lambda value: value.replace(" ", "_") if isinstance(value, str) else None,
)
def test_a_step_that_fails_is_counted_and_answers_go_on(
    bench: Bench,
    rows_of: RowsOf,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    owner: object,
    name: str,
    what: str,
    options: dict[str, Any],
) -> None:
    session = bench.open(**options)
    session.create_query(JOIN, "q")
    bench.push(session, a=[(1, 1, 0)], b=[(1, 2, 0)])
    assert session.progress is not None
    assert session.progress["afterCommit"] == {"failures": 0, "lastFailure": None}
    with monkeypatch.context() as broken, caplog.at_level(logging.ERROR, "dovetail"):
        broken.setattr(owner, name, fails)
        bench.push(session, a=[(1, 3, 1)])
        session.create_query(KEPT_FOR_A_SECOND, "later")
        bench.push(session, b=[(1, 4, 1)])
    assert "is committed, but" in caplog.text
    assert session.progress["batchId"] == 2
    assert session.progress["afterCommit"] == {"failures": 2, "lastFailure": f"batch 2: {what}: OSError: no more"}
    bench.push(session, a=[(1, 5, 1)])
    assert session.progress["afterCommit"]["failures"] == 2
    expected = [(1, a, b) for a in (1, 3, 5) for b in (2, 4)]
    assert rows_of(session, "q") == expected
    session.close()
    again = bench.open(**options)
    assert rows_of(again, "q") == expected
    assert rows_of(again, "later") == [(1, 1, 4), (1, 3, 4), (1, 5, 2), (1, 5, 4)]


def test_a_listener_that_fails_leaves_the_others_in_peace(bench: Bench) -> None:
    session = bench.open()
    heard: list[int] = []
    session.engine.answers.listen(fails)
    session.engine.answers.listen(lambda news: heard.append(news.batch))
    bench.push(session, a=[(1, 1, 0)])
    assert heard == [0]
    assert session.progress is not None
    assert session.progress["afterCommit"] == {"failures": 1, "lastFailure": "batch 0: a listener: OSError: no more"}


def test_a_process_that_ends_is_not_held_up(bench: Bench) -> None:
    """A crash is no failure to be counted: what it interrupts stays undone."""
    session = bench.open()
    session._faults.crash_at = "during_cleanup"
    with pytest.raises(SimulatedCrash):
        bench.push(session, a=[(1, 1, 0)])
    assert session.engine.head.batch == 0
