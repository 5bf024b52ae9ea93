from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.query.output_names import unique_names


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        ([], []),
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a_2", "a_3"]),
        (["a", "A"], ["a", "A_2"]),
        (["a", "a_2", "a"], ["a", "a_2", "a_3"]),
        (["a", "a", "a_2"], ["a", "a_2", "a_2_2"]),
    ],
)
def test_a_repeated_name_gets_the_next_free_number(names: list[str], unique: list[str]) -> None:
    assert unique_names(names) == unique


@given(st.lists(st.sampled_from(["a", "A", "a_2", "a_3", "b", "B_2"]), max_size=12))
def test_names_differ_whatever_their_case_and_first_ones_stay(names: list[str]) -> None:
    unique = unique_names(names)
    assert len({name.lower() for name in unique}) == len(names)
    assert all(new.startswith(old) for old, new in zip(names, unique, strict=True))
    assert unique[:1] == names[:1]
