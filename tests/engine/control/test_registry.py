from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.core.errors import QueryError, SessionError
from dovetail.engine.control import registry
from dovetail.engine.control.changelog import Action, Change
from dovetail.engine.control.query_options import QueryOptions
from dovetail.engine.control.registry import QueryRecord, QueryState, Registry, check_name


def record(number: int, state: QueryState = QueryState.RUNNING, name: str = "q") -> QueryRecord:
    return QueryRecord(f"{name}#{number}", name, "SELECT 1", state)


@pytest.mark.parametrize("name", ["q", "Trolls", "_x", "a-b_c9", "x" * 100])
def test_names_that_can_be_said_everywhere_are_taken(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "9q", "-q", "a b", "a/b", "../up", "a.b", "q#1", "ä", "q\n", "x" * 101])
def test_other_names_are_refused_with_what_to_use(name: str) -> None:
    with pytest.raises(QueryError, match="cannot name a query") as caught:
        check_name(name)
    assert caught.value.hint


def test_a_name_belongs_to_the_query_that_is_not_dropped() -> None:
    known = Registry((record(1, QueryState.DROPPED), record(2, QueryState.QUARANTINED)))
    found = known.named("q")
    assert found is not None
    assert found.id == "q#2"
    assert Registry((record(1, QueryState.DROPPED),)).named("q") is None


def test_only_running_queries_run() -> None:
    known = Registry(tuple(record(number, state) for number, state in enumerate(QueryState)))
    assert [own.state for own in known.running] == [QueryState.RUNNING]


def test_changes_give_a_new_value_and_keep_the_order() -> None:
    before = Registry((record(1), record(2, name="r")))
    after = before.updated([replace(record(1), total_rows=5), record(3)])
    assert [own.id for own in after.records] == ["q#1", "r#2", "q#3"]
    assert (before["q#1"].total_rows, after["q#1"].total_rows) == (0, 5)


def test_the_oldest_dropped_queries_are_forgotten_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "DROPPED_REMEMBERED", 2)
    kept = [record(0), record(9, QueryState.QUARANTINED)]
    dropped = [record(number, QueryState.DROPPED) for number in range(1, 6)]
    assert [own.id for own in Registry().updated([*kept, *dropped]).records] == ["q#0", "q#9", "q#4", "q#5"]


def test_users_see_changes_before_a_batch_applied_them() -> None:
    options = QueryOptions(max_results_per_batch=7)
    changes = [
        Change(5, Action.CREATE, "q#5", "q", "SELECT 5", replaces="q#1"),
        Change(6, Action.DROP, "r#2", "r"),
        Change(7, Action.SET, "q#5", "q", options=options.to_json()),
    ]
    seen = Registry((record(1), record(2, name="r"), record(3, name="s"))).with_pending(changes)
    assert [own.state.value for own in seen.records] == ["dropped", "dropped", "running", "pending"]
    assert seen["q#5"].options == options
    found = seen.named("q")
    assert found is not None
    assert found.id == "q#5"


def test_a_record_survives_json() -> None:
    whole = QueryRecord("q#1", "q", "SELECT 'ä'", QueryState.QUARANTINED, 3, 1, None, 4, "division by zero", 9)
    assert QueryRecord.from_json(whole.to_json()) == whole


def test_a_query_that_kept_rows_for_itself_is_refused_unless_it_is_dropped() -> None:
    """Dovetail had `copies="query"`: the rows of such a query lie in stores that nothing reads any more."""
    for own in (record(1), record(1, QueryState.DROPPED)):
        assert QueryRecord.from_json({**own.to_json(), "owns_stores": False}) == own
    dropped = record(1, QueryState.DROPPED)
    assert QueryRecord.from_json({**dropped.to_json(), "owns_stores": True}) == dropped
    with pytest.raises(SessionError, match="query 'q' of this checkpoint keeps its rows for itself"):
        QueryRecord.from_json({**record(1).to_json(), "owns_stores": True})
