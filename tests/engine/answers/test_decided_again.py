"""Selections of shipped rows travel as bits, or are decided again where rows arrive: the answers are the same (S7)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.marks import compare_marks
from dovetail.engine.options import EngineOptions
from dovetail.kernels.select.select_all import select_all
from dovetail.plan.shipping import Copies, Shipping
from dovetail.runtime.source import store_operator
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.int32()), ("f", pa.float64())])
QUERY_COUNT = 70


def run(folder: Path, **options: Any) -> tuple[list[Counter[tuple[Any, ...]]], int]:
    rng = Random(5)
    session = LocalSession(folder, small_batch_rows=0, partitions=3, **options)
    session.create_stream("a", SCHEMA)
    session.create_stream("b", SCHEMA)
    for number in range(QUERY_COUNT):
        column, sign = rng.choice(("x", "f")), rng.choice(("<", ">=", "="))
        sql = f"SELECT a.k, a.x, a.f, b.x AS bx, b.f AS bf FROM a JOIN b ON a.k = b.k WHERE a.{column} {sign} {number}"
        session.create_query(sql, f"q{number}")
    columns = {
        "k": [rng.randrange(50) for _ in range(200)],
        "x": [rng.choice([None, rng.randrange(QUERY_COUNT)]) for _ in range(200)],
        "f": [rng.choice([None, float("nan"), float(rng.randrange(QUERY_COUNT))]) for _ in range(200)],
    }
    session.push({stream: pa.table(columns, SCHEMA) for stream in ("a", "b")})
    shipped_bytes = (session.progress or {})["shipped"]["bytes"]
    found = [
        Counter(tuple(map(str, row.values())) for row in session.results(f"q{number}").to_pylist())
        for number in range(0, QUERY_COUNT, 10)
    ]
    session.close()
    return found, shipped_bytes


def test_many_selections_do_not_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again, fewer_bytes = run(tmp_path / "again", exchange="rows")
    monkeypatch.setattr(EngineOptions, "shipping", Shipping(Copies.PARTITION, decides_again=False))
    with_bits, more_bytes = run(tmp_path / "bits", exchange="rows")
    assert again == with_bits
    assert sum(map(len, again)) > 200
    assert fewer_bytes < 0.9 * more_bytes


def test_bits_of_other_rows_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again, _ = run(tmp_path / "again", exchange="rows")

    def of_other_rows(selections: Any, column_of: Any, length: int, *rest: Any) -> Any:
        backwards = pa.array(range(length)[::-1])
        return select_all(selections, lambda column: column_of(column).take(backwards), length, *rest)

    monkeypatch.setattr(store_operator, "select_all", of_other_rows)
    assert run(tmp_path / "wrong", exchange="rows")[0] != again


def test_the_comparison_of_both_ways_has_its_figures() -> None:
    found = compare_marks(rows=4000, partitions=2, counts=(1, 100), repeats=1)
    assert list(found) == ["1", "100"]
    bytes_by_way = [{way: cost["bytes"] for way, cost in ways.items()} for ways in found.values()]
    # What only a selection reads is not kept: then its answer travels in any case.
    assert bytes_by_way[0]["query_sets"] == bytes_by_way[0]["specialized"]
    assert bytes_by_way[1]["query_sets"] > 1.2 * bytes_by_way[1]["specialized"]  # type: ignore[operator]
