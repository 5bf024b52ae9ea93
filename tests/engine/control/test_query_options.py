from __future__ import annotations

from typing import Any

import pytest

from dovetail.core.errors import QueryError
from dovetail.engine.control.query_options import QueryOptions, query_options
from dovetail.engine.control.sink_spec import SinkSpec


def test_options_survive_json() -> None:
    whole = QueryOptions(keep_intermediates=False, max_results_per_batch=9, sink=SinkSpec("kafka", {"topic": "x"}))
    assert QueryOptions.from_json(whole.to_json()) == whole
    assert QueryOptions.from_json(QueryOptions().to_json()) == QueryOptions()


def test_what_is_not_given_stays() -> None:
    base = query_options({"max_results_per_batch": 5, "sink": "kafka", "sink.topic": "x"})
    changed = query_options({"max_results_per_batch": 6}, base=base)
    assert changed == QueryOptions(max_results_per_batch=6, sink=SinkSpec("kafka", {"topic": "x"}))
    assert query_options({"sink": None}, base=base).sink is None
    assert query_options({"sink": "noop"}, base=base).sink == SinkSpec("noop")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"colour": 1}, "unknown option: colour"),
        ({"sink.topic": "x"}, "without a sink"),
        ({"sink": "a b"}, "cannot name a sink"),
        ({"backfill": "yes"}, "option backfill"),
        ({"max_results_per_batch": 0}, "max_results_per_batch"),
        ({"max_results_per_batch": True}, "max_results_per_batch"),
        ({"max_results_per_batch": "7"}, "max_results_per_batch"),
    ],
)
def test_wrong_options_are_refused_with_what_to_write(given: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        query_options(given)
    assert caught.value.hint
