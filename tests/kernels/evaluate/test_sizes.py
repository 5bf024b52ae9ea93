from __future__ import annotations

import pyarrow as pa
import pytest

from dovetail.core.errors import ColumnTooLarge, EvaluationError
from dovetail.kernels.evaluate import sizes
from dovetail.kernels.evaluate.evaluate import evaluate, evaluate_mask
from dovetail.kernels.evaluate.sizes import MAX_VALUE_BYTES
from dovetail.query.expression import Call, Column, Expression, Literal
from dovetail.query.types import BOOLEAN, INT, STRING

TEXT = Column("r", "s", STRING)


def _values(expression: Expression, texts: list[str | None]) -> pa.Array:
    return evaluate(expression, lambda _: pa.array(texts, pa.string()), len(texts))


def _call(function: str, *args: Expression | str | int | None) -> Call:
    typed = [arg if isinstance(arg, Column | Call | Literal) else _literal(arg) for arg in args]
    return Call(function, tuple(typed), STRING)


def _literal(value: str | int | None) -> Literal:
    return Literal(value, INT if isinstance(value, int) else STRING)


@pytest.mark.parametrize(
    "expression",
    [
        _call("rpad", TEXT, 300_000_000, "x"),
        _call("lpad", TEXT, 2**31 - 1, "\u00e9"),
        _call("repeat", TEXT, 2**31 - 1),
        _call("concat", _call("repeat", TEXT, MAX_VALUE_BYTES), TEXT),
        _call("replace", _call("repeat", TEXT, 10_000), "a", "b" * 10_000),
    ],
    ids=lambda call: call.function,
)
def test_a_value_that_is_too_long_is_refused_before_it_is_made(expression: Call) -> None:
    with pytest.raises(EvaluationError, match="a value has at most 16,777,216"):
        _values(expression, ["a"])


@pytest.mark.parametrize(
    "expression",
    [_call("rpad", TEXT, 300_000_000, "x"), _call("rpad", TEXT, 300_000_000, None), _call("repeat", TEXT, 10**9)],
    ids=["rpad", "rpad with NULL", "repeat"],
)
def test_nothing_is_too_long_for_a_row_of_null(expression: Call) -> None:
    assert _values(expression, [None]).to_pylist() == [None]


def test_a_filler_that_is_empty_pads_nothing() -> None:
    assert _values(_call("rpad", TEXT, 300_000_000, ""), ["a"]).to_pylist() == ["a"]


def test_a_search_that_finds_little_is_no_long_text() -> None:
    long = _call("repeat", TEXT, 10_000)
    assert _values(_call("replace", long, "b", "c" * 10_000), ["a"]).to_pylist() == ["a" * 10_000]


def test_a_condition_over_long_texts_is_decided_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "WORK_BYTES", 1 << 16)
    each, rows = 10_000, 100
    padded = _call("rpad", TEXT, each, "x")
    condition = Call("startswith", (padded, Literal("b", STRING)), BOOLEAN)
    texts = ["b" if row % 5 == 0 else "a" for row in range(rows)]
    mask = evaluate_mask(condition, lambda _: pa.array(texts), rows)
    assert mask.tolist() == [text == "b" for text in texts]


def test_a_column_of_answers_that_is_too_large_is_left_to_who_asks() -> None:
    rows = 2**31 // MAX_VALUE_BYTES + 2
    with pytest.raises(ColumnTooLarge) as raised:
        _values(_call("rpad", TEXT, MAX_VALUE_BYTES - 8, "x"), ["a"] * rows)
    assert raised.value.needed_bytes > 2**31
