from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.core.errors import StreamError
from dovetail.query.stream import Stream
from dovetail.query.types import INT, STRING, TIMESTAMP, TIMESTAMP_NTZ

VIEWS = Stream("views", (("id", INT), ("ts", TIMESTAMP), ("local", TIMESTAMP_NTZ)), "ts", 2_000_000)


def test_both_kinds_of_timestamp_can_be_the_event_time() -> None:
    assert replace(VIEWS, event_time="local").event_time == "local"
    assert replace(VIEWS, event_time=None).event_time is None


def test_a_column_has_its_type() -> None:
    assert VIEWS.type_of("id") == INT
    assert VIEWS.type_of("nope") is None


@pytest.mark.parametrize("name", ["", "my views", "2nd", "a-b", "views;"])
def test_a_name_that_sql_could_not_say_is_refused(name: str) -> None:
    with pytest.raises(StreamError, match="cannot name a stream"):
        replace(VIEWS, name=name)


def test_columns_that_differ_only_in_case_are_refused() -> None:
    with pytest.raises(StreamError, match="columns of one name: ID, id"):
        replace(VIEWS, columns=(*VIEWS.columns, ("ID", STRING)))


def test_an_event_time_that_is_no_column_is_refused_with_the_columns() -> None:
    with pytest.raises(StreamError, match="no column 'time'") as caught:
        replace(VIEWS, event_time="time")
    assert caught.value.hint == "one of: id, ts, local"


def test_an_event_time_that_is_no_timestamp_is_refused() -> None:
    with pytest.raises(StreamError, match="'id' is int, not a timestamp"):
        replace(VIEWS, event_time="id")


def test_negative_lateness_is_refused() -> None:
    with pytest.raises(StreamError, match="lateness is negative"):
        replace(VIEWS, lateness_us=-1)
