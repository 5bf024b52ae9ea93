from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from dovetail.core.errors import SessionError
from dovetail.engine.options import EngineTuning, make_options, user_options
from dovetail.engine.options.engine_options import MOVED, RECORDS, USER_OPTIONS, with_tuning
from dovetail.engine.options.option import options_of
from dovetail.engine.options.session_options import SessionOptions
from tools.options_page import PAGE, page

MOST_OPTIONS = 22


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(SessionError, match="unknown option: keygroups, speed") as caught:
        user_options({"speed": 11, "keygroups": 4}, "UTC")
    assert caught.value.hint
    assert caught.value.hint.startswith("did you mean key_groups? options are: ")
    assert "trigger" in caught.value.hint


@pytest.mark.parametrize("name", options_of(EngineTuning))
def test_an_inner_setting_is_refused_with_where_it_is(name: str) -> None:
    with pytest.raises(SessionError, match=f"{name} is no option of a session") as caught:
        user_options({name: 1}, "UTC")
    assert caught.value.hint
    assert f"tuning=EngineTuning({name}=...)" in caught.value.hint


def test_the_time_zone_is_sparks() -> None:
    with pytest.raises(SessionError, match="timezone is no option of a session") as caught:
        user_options({"timezone": "UTC"}, "UTC")
    assert "spark.sql.session.timeZone" in str(caught.value.hint)
    assert user_options({}, "Europe/Berlin").timezone == "Europe/Berlin"


def test_options_and_inner_settings_are_few_and_apart() -> None:
    assert len(USER_OPTIONS) == len(set(USER_OPTIONS)) <= MOST_OPTIONS
    assert not set(USER_OPTIONS) & MOVED.keys()


def test_an_editor_completes_the_options_that_there_are() -> None:
    hints = {name: hint for record in RECORDS.values() for name, hint in get_type_hints(record).items()}
    assert get_type_hints(SessionOptions) == hints


def test_the_page_is_what_the_records_say() -> None:
    assert PAGE.read_text() == page(), "run: make options"
    assert all(f"| `{name}` |" in page() for name in (*USER_OPTIONS, *options_of(EngineTuning)))


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"key_groups": 0}, "key_groups is 0"),
        ({"key_groups": 100}, "key_groups is 100"),
        ({"key_groups": -2}, "key_groups is -2"),
        ({"key_groups": 1 << 16}, "key_groups is 65536"),
        ({"partitions": 0}, "partitions is 0"),
        ({"partitions": 9, "key_groups": 8}, "partitions is 9"),
        ({"routing": "best"}, "routing is 'best'"),
        ({"merge_fanout": 1}, "merge_fanout is 1"),
        ({"storage_budget": 0}, "storage_budget is 0"),
        ({"max_query_cost_ms": "much"}, "max_query_cost_ms is 'much'"),
        ({"piece_bytes": 0}, "piece_bytes is 0"),
        ({"piece_bytes": "1 GB"}, "piece_bytes is '1 GB'"),
        ({"max_pairs": 0}, "max_pairs is 0"),
        ({"small_batch_rows": -1}, "small_batch_rows is -1"),
        ({"keep_intermediates": "no"}, "keep_intermediates is 'no'"),
        ({"keep_intermediates": "by cost", "optimizer": "greedy"}, "the greedy optimizer knows no costs"),
        ({"replan": "no"}, "replan is 'no'"),
        ({"factorize": "no"}, "factorize is 'no'"),
        ({"plan_in_background": 7}, "plan_in_background is 7"),
        ({"optimizer": "best"}, "optimizer is 'best'"),
        ({"copies": "tuple"}, "copies is 'tuple'"),
        ({"copies": "query"}, "copies is 'query'"),
        ({"routing_subgroups": 2}, "routing_subgroups is given, and routing is 'auto'"),
        ({"routing_subgroups": 0, "routing": "contrand"}, "routing_subgroups is 0"),
        ({"idle_timeout": "soon"}, "idle_timeout: 'soon' is no duration"),
        ({"idle_timeout": "0 seconds"}, "idle_timeout is '0 seconds'"),
        ({"idle_timeout": 5}, "idle_timeout: '5' is no duration"),
    ],
)
def test_values_that_cannot_work_are_refused_with_a_hint(given: dict[str, Any], what: str) -> None:
    with pytest.raises(SessionError, match=what) as caught:
        make_options(**given)
    assert caught.value.hint


def test_good_values_are_taken() -> None:
    options = make_options(partitions=8, key_groups=8, merge_fanout=2, storage_budget=1 << 30)
    assert (options.partitioning.partitions, options.partitioning.key_groups) == (8, 8)
    assert (options.tuning.merge_fanout, options.limits.storage_budget) == (2, 1 << 30)


def test_what_a_session_takes_is_told_apart_from_inner_settings() -> None:
    given = {"partitions": 3, "exchange": "rows", "copies": "key"}
    assert with_tuning(given) == {"partitions": 3, "exchange": "rows", "tuning": EngineTuning(copies="key")}
    by_session = user_options({"partitions": 3, "exchange": "rows"}, "UTC", EngineTuning(copies="key"))
    assert by_session == make_options(**given)
