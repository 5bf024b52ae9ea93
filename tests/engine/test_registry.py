from __future__ import annotations

import pytest

from dovetail.core.errors import QueryError
from dovetail.engine.registry import QueryRecord, QueryState, Registry, check_name


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
    registry = Registry((record(1, QueryState.DROPPED), record(2, QueryState.QUARANTINED)))
    found = registry.named("q")
    assert found is not None
    assert found.id == "q#2"
    assert Registry((record(1, QueryState.DROPPED),)).named("q") is None


def test_only_running_queries_run() -> None:
    registry = Registry(tuple(record(number, state) for number, state in enumerate(QueryState)))
    assert [own.state for own in registry.running] == [QueryState.RUNNING]


def test_changes_give_a_new_value_and_keep_the_order() -> None:
    before = Registry((record(1), record(2, name="r")))
    after = before.changed("q#1", total_rows=5)
    assert [own.id for own in after.records] == ["q#1", "r#2"]
    assert (before["q#1"].total_rows, after["q#1"].total_rows) == (0, 5)
    assert [own.id for own in after.with_record(record(3)).records] == ["q#1", "r#2", "q#3"]


def test_a_record_survives_json() -> None:
    whole = QueryRecord("q#1", "q", "SELECT 'ä'", QueryState.QUARANTINED, 3, 1, None, "division by zero", 9)
    assert QueryRecord.from_json(whole.to_json()) == whole
