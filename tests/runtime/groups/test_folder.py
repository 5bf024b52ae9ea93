from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from dovetail.runtime.groups import folder
from dovetail.runtime.groups.partial_groups import PartialGroups


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
