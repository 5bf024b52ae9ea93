"""The client speaks as a session in one's own process does: where both have a thing, it has one name."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import pytest

from dovetail import client as over_http
from dovetail.api import Query, Session
from dovetail.engine.backfill.record import BackfillStatus
from dovetail.engine.control.query_status import QueryStatus
from dovetail.engine.control.statement_result import StatementResult
from dovetail.engine.delivery.tail import Tail

ONLY_IN_PROCESS = {
    # Spark runs in this process, and streams are its DataFrames.
    Session: {
        *("await_termination", "create_stream", "declare_stream", "process_all_available", "recent_progress", "start"),
        *("delivery_of", "engine", "estimate", "stop", "vacuum"),
        *("bad_rows", "retry_bad_rows"),
    },
    Query: {"await_delivered", "estimate", "foreach_batch", "results"},
    Tail: set(),
}
ONLY_OVER_HTTP = {
    Session: {"apply_file", "close", "statuses", "url", "validate"},
    # JSON values as they come, without Arrow.
    Query: {"rows"},
    # What a service says beside batches.
    Tail: {"events"},
}
TWINS = [(Session, over_http.Client), (Query, over_http.Query), (Tail, over_http.Tail)]


def public(kind: type) -> dict[str, Any]:
    return {name: member for name, member in vars(kind).items() if not name.startswith("_")}


@pytest.mark.parametrize(("mine", "theirs"), TWINS)
def test_calls_have_one_name(mine: type, theirs: type) -> None:
    here, there = public(mine), public(theirs)
    assert here.keys() - there.keys() == ONLY_IN_PROCESS[mine]
    assert there.keys() - here.keys() == ONLY_OVER_HTTP[mine]
    for name in here.keys() & there.keys():
        assert isinstance(here[name], property) == isinstance(there[name], property), name
        if not isinstance(here[name], property):
            mine_takes, theirs_takes = (list(inspect.signature(call).parameters) for call in (here[name], there[name]))
            assert [word for word in mine_takes if word not in theirs_takes] == [], name


@pytest.mark.parametrize(
    ("mine", "theirs"), [(QueryStatus, over_http.QueryStatus), (BackfillStatus, over_http.BackfillStatus)]
)
def test_records_have_the_same_fields(mine: type, theirs: type) -> None:
    assert [entry.name for entry in fields(mine) if entry.name not in {e.name for e in fields(theirs)}] == []


def test_statements_answer_with_the_same_words() -> None:
    names = {entry.name for entry in fields(StatementResult)}
    assert names <= public(over_http.StatementResult).keys()
