from __future__ import annotations

import pyarrow as pa
import pytest

from dovetail.core.errors import ColumnTooLarge, EvaluationError
from dovetail.kernels.evaluate import sizes
from dovetail.kernels.evaluate.work_limit import work_limit
from dovetail.plan.store_plan import ROW, IndexPlan
from dovetail.query.expression import Call, Column, Literal
from dovetail.query.types import INT, STRING
from dovetail.runtime.source import key_codes as home
from dovetail.runtime.source.key_codes import key_codes

TEXT, NUMBER = Column(ROW, "s", STRING), Column(ROW, "k", INT)
LONG = Call("rpad", (TEXT, Literal(5_000, INT), Literal("x", STRING)), STRING)
COLUMNS = {
    "s": pa.array([None if n % 7 == 0 else f"t{n % 5}" for n in range(100)]),
    "k": pa.array([None if n == 3 else n % 3 for n in range(100)], pa.int32()),
}


def codes(index: IndexPlan, length: int = 100) -> tuple[list[int], list[bool]]:
    found = key_codes(index, lambda column: COLUMNS[column.name].slice(0, length), length, "UTC")
    valid = [True] * length if found.valid_mask is None else found.valid_mask.tolist()
    return [int(code) for code, is_valid in zip(found.codes, valid, strict=True) if is_valid], valid


@pytest.mark.parametrize("piece_bytes", [5_010, 12_345, 100_000])
@pytest.mark.parametrize("index", [IndexPlan((LONG,)), IndexPlan((LONG, NUMBER)), IndexPlan((NUMBER, LONG), placing=0)])
def test_long_keys_made_in_pieces_have_the_codes_of_those_made_at_once(
    index: IndexPlan, piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = codes(index)
    assert not all(whole[1])
    for module in (sizes, home):
        monkeypatch.setattr(module, "WORK_BYTES", piece_bytes)
    assert codes(index) == whole


def test_one_key_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sizes, home):
        monkeypatch.setattr(module, "WORK_BYTES", 4_000)
    with pytest.raises(ColumnTooLarge):
        codes(IndexPlan((LONG,)))


def test_pieces_are_given_up_when_there_is_no_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sizes, home):
        monkeypatch.setattr(module, "WORK_BYTES", 5_010)
    with work_limit(0.0), pytest.raises(EvaluationError, match="ms of work"):
        codes(IndexPlan((LONG,)))
