from __future__ import annotations

from typing import Any

import pytest

from dovetail.core.errors import SessionError
from dovetail.engine.options import make_options


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(SessionError, match="unknown option: keygroups, speed") as caught:
        make_options(speed=11, keygroups=4)
    assert caught.value.hint
    assert "key_groups" in caught.value.hint
    assert "trigger" in caught.value.hint


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"key_groups": 0}, "key_groups is 0"),
        ({"key_groups": 100}, "key_groups is 100"),
        ({"key_groups": -2}, "key_groups is -2"),
        ({"key_groups": 1 << 16}, "key_groups is 65536"),
        ({"partitions": 0}, "partitions is 0"),
        ({"partitions": 9, "key_groups": 8}, "partitions is 9"),
        ({"merge_fanout": 1}, "merge_fanout is 1"),
        ({"storage_budget": 0}, "storage_budget is 0"),
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
    assert (options.partitions, options.key_groups, options.storage_budget) == (8, 8, 1 << 30)
