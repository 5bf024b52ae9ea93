from __future__ import annotations

import pickle

import pytest

from dovetail.core.errors import (
    BucketCorrupt,
    BucketMissing,
    DovetailError,
    EvaluationError,
    SessionError,
    StoreError,
    UnknownName,
    charged,
    is_chargeable,
)

ERROR = UnknownName("no column 'x'", where="line 1, column 8", hint="one of: k, v")


def test_the_text_says_what_where_and_what_to_do_instead() -> None:
    assert str(ERROR) == "no column 'x'\n  at: line 1, column 8\n  instead: one of: k, v"
    assert str(StoreError("broken")) == "broken"


@pytest.mark.parametrize("error", [ERROR, BucketMissing("gone"), DovetailError("x", hint="y")])
def test_an_error_survives_the_way_from_a_worker(error: DovetailError) -> None:
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(back) is type(error)
    assert (back.what, back.where, back.hint) == (error.what, error.where, error.hint)
    assert str(back) == str(error)


@pytest.mark.parametrize("error", [MemoryError(), ValueError("x"), KeyError("x"), RecursionError()])
def test_what_a_text_brought_about_is_charged(error: Exception) -> None:
    assert is_chargeable(error)
    assert isinstance(charged(error), EvaluationError)


@pytest.mark.parametrize("error", [OSError(28, "no space left"), BucketCorrupt("x"), SessionError("x")])
def test_what_is_nobodys_fault_is_raised_again(error: Exception) -> None:
    with pytest.raises(type(error)):
        charged(error)


def test_an_evaluation_error_is_charged_as_it_is() -> None:
    error = EvaluationError("division by zero", hint="guard it")
    assert charged(error) is error
