from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from dovetail.engine.control.registry import QueryState
from dovetail.plan.group_plan import Fold
from dovetail.runtime.groups import folder
from dovetail.runtime.groups.failed_groups import users_of_most_bytes
from dovetail.runtime.groups.limited_answers import GroupAnswers
from dovetail.runtime.groups.partial_groups import PartialGroups
from dovetail.testing.local_session import LocalSession
from tests.support.neighbours import SCHEMA, rows


def test_long_texts_do_not_wait_until_there_are_many_rows_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pieces are of one group: its partial rows take no more room than a few of them, whatever their number."""
    monkeypatch.setattr(folder, "BYTES_A_FOLD", 10_000)
    monkeypatch.setattr(folder, "fold_groups", lambda _table, rows: rows.take(np.array([0])))
    pieces = folder._Pieces()
    most = 0
    for _ in range(200):
        piece = PartialGroups((pa.array([1]),), None, {"longest": pa.array(["x" * 1000])}, 1)
        pieces.add(cast("Any", None), piece)
        most = max(most, sum(each.size_bytes for each in pieces.pieces))
        assert pieces.size_bytes == sum(each.size_bytes for each in pieces.pieces)
    assert 10_000 < most < 15_000


def test_who_asks_for_long_texts_pays_for_folding_them(tmp_path: Path) -> None:
    """Both read the same groups; one counts, the other asks for the largest text."""
    near = "b.ts BETWEEN a.ts - INTERVAL 9 SECONDS AND a.ts + INTERVAL 9 SECONDS"
    with LocalSession(tmp_path) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA, "ts")
        joined = f"FROM a JOIN b ON a.k = b.k AND {near} GROUP BY a.k"
        counting = session.create_query(f"SELECT a.k, SUM(b.v) AS n {joined}", "counting")
        asking = session.create_query(f"SELECT a.k, MAX(b.s) AS x {joined}", "asking")
        session.push({"a": rows(1), "b": rows(2)})
        (group,) = session.engine.plans.planned().plan.groups
    everybody = {counting.status.id, asking.status.id}
    (text,) = (column for column in group.columns if column.fold is Fold.MAX)
    (number,) = (column for column in group.columns if column.fold is Fold.SUM)

    def paying(**columns: pa.Array) -> set[str]:
        names = {"text": text.name, "number": number.name}
        own = {names[name]: array for name, array in columns.items()}
        return users_of_most_bytes(group, group.table, PartialGroups((pa.array([1, 2]),), None, own, 2))

    numbers = pa.array([1, 2])
    assert paying(text=pa.array(["x" * 1000, "y"]), number=numbers) == {asking.status.id}
    assert paying(text=pa.array(["x", "y"]), number=numbers) == everybody
    assert paying(number=numbers) == everybody
    assert paying() == everybody


def test_long_texts_that_differ_are_not_copied_together_and_equal_ones_are_folded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folder, "BYTES_A_FOLD", 1_000)
    monkeypatch.setattr(folder, "fold_groups", lambda _table, rows: rows.take(np.array([0])))
    pieces = folder._Pieces()
    for text in "abc":
        pieces.add(cast("Any", None), PartialGroups((pa.array([text * 2_000]),), None, {}, 1))
    assert [piece.keys[0][0].as_py()[0] for piece in pieces.fold(cast("Any", None))] == ["a", "b", "c"]
    pieces.add(cast("Any", None), PartialGroups((pa.array(["b" * 2_000]),), None, {}, 1))
    assert len(pieces.fold(cast("Any", None))) == 1


def test_groups_of_long_texts_stop_at_the_limit_of_bytes_before_they_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "LARGE_PIECE_BYTES", 1_000)
    answered: list[Any] = []
    monkeypatch.setattr(GroupAnswers, "write", lambda *given: answered.append(given))
    with LocalSession(tmp_path, max_result_bytes_per_batch=50_000) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA, "ts")
        text = "rpad(s, 20000, CAST(k AS STRING))"
        long = session.create_query(f"SELECT {text} AS x, COUNT(*) AS n FROM a GROUP BY {text}", "long")
        session.push({"a": rows(*range(9)), "b": rows(2)})
        assert not answered
        assert long.status.state is QueryState.QUARANTINED
        assert "answers of more than 50,000 bytes" in str(long.status.error)
