"""Expressions are keys of dictionaries everywhere: they hash once, in each process for itself."""

from __future__ import annotations

import pickle
from dataclasses import replace

from dovetail.query.expression import Call, Column, Literal
from dovetail.query.types import BIGINT, BOOLEAN

LARGE = Call("eq", (Column("a", "k", BIGINT), Literal(5, BIGINT)), BOOLEAN)


def test_a_hash_is_worked_out_once_and_is_that_of_equal_ones() -> None:
    other = Call("eq", (Column("a", "k", BIGINT), Literal(5, BIGINT)), BOOLEAN)
    assert other == LARGE
    assert hash(other) == hash(LARGE) == hash(LARGE)
    assert hash(replace(LARGE, function="lt")) != hash(LARGE)


def test_a_hash_does_not_travel() -> None:
    """Texts hash otherwise in every process: a dictionary of a worker would not find what the driver hashed."""
    hash(LARGE)
    assert b"_hash" not in pickle.dumps(LARGE)
    assert pickle.loads(pickle.dumps(LARGE)) == LARGE  # noqa: S301 - our own
    assert hash(pickle.loads(pickle.dumps(LARGE))) == hash(LARGE)  # noqa: S301
