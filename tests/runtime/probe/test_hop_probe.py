from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dovetail.kernels.match import match_pieces
from dovetail.runtime import result_sink
from dovetail.runtime.probe import decide_pairs, hop_facts, hop_probe, rows_in_flight
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int64()), ("j", pa.string()), ("v", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
NEAR = "b.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts + INTERVAL 3 SECONDS"
LATER = "c.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts + INTERVAL 3 SECONDS"
QUERIES = {
    # More legs than a word has bits, in one node and on to the next.
    **{f"q{n}": f"SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k AND {NEAR} WHERE b.v >= {n}" for n in range(70)},
    **{
        f"p{n}": f"SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k AND {NEAR} JOIN c ON b.j = c.j AND {LATER}"
        f" WHERE a.v <= {n} AND a.v + c.v > {n}"
        for n in range(66)
    },
    "computed": f"SELECT a.v, c.v AS x FROM a JOIN b ON a.k = b.k AND {NEAR} JOIN c ON b.v + a.v = c.v AND {LATER}",
    "ranges": f"SELECT a.v, c.v AS x FROM a JOIN b ON a.k = b.k AND {NEAR} JOIN c ON c.v < b.v - 30 AND {LATER}",
}
BATCHES, ROWS = 2, 24


def table(seed: int, batch: int) -> pa.Table:
    drawn = np.random.default_rng((seed, batch))
    keys, times = drawn.integers(0, 12, ROWS), drawn.integers(0, 4_000_000, ROWS) + batch * 2_000_000
    columns = [
        pa.array(keys, mask=drawn.random(ROWS) < 0.1),
        pa.array([f"t{key}" for key in drawn.integers(0, 5, ROWS)]),
        pa.array(drawn.integers(0, 70, ROWS)),
        pa.array(times, pa.timestamp("us", "UTC")),
    ]
    return pa.table(columns, schema=SCHEMA)


def answers(folder: Path, partitions: int) -> dict[str, Counter[tuple[object, ...]]]:
    with LocalSession(folder, partitions=partitions) as session:
        for name in "abc":
            session.create_stream(name, SCHEMA, "ts", "10 seconds")
        for name, sql in QUERIES.items():
            session.create_query(sql, name)
        for batch in range(BATCHES):
            session.push({name: table(seed, batch) for seed, name in enumerate("abc")})
        found = {name: session.results(name).to_pylist() for name in QUERIES}
    return {name: Counter(tuple(row.values()) for row in rows) for name, rows in found.items()}


def expected(name: str) -> Counter[tuple[object, ...]]:
    """By nested loops, of a query of two streams."""
    least, rows = int(name[1:]), {stream: [] for stream in "ab"}
    for seed, stream in enumerate("ab"):
        for batch in range(BATCHES):
            rows[stream] += table(seed, batch).to_pylist()
    return Counter(
        (a["v"], b["v"])
        for a in rows["a"]
        for b in rows["b"]
        if a["k"] is not None and a["k"] == b["k"] and b["v"] >= least
        if abs((a["ts"] - b["ts"]).total_seconds()) <= 3
    )


def test_answers_do_not_depend_on_how_many_rows_are_in_flight_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = answers(tmp_path / "usual", partitions=1)
    assert sum(map(len, usual.values())) > len(QUERIES)
    assert usual["computed"]
    assert usual["ranges"]
    for name in ("q0", "q1", "q63", "q64", "q69"):
        assert usual[name] == expected(name)
    monkeypatch.setattr(hop_probe, "ROWS_AT_ONCE", 200)
    monkeypatch.setattr(hop_probe, "SORTED_FROM_ROWS", 8)
    monkeypatch.setattr(match_pieces, "FEWEST_PAIRS", 300)
    monkeypatch.setattr(match_pieces, "CANDIDATES", 40)
    monkeypatch.setattr(hop_facts, "ROWS_A_PIECE", 100)
    monkeypatch.setattr(rows_in_flight, "ROWS_A_MESSAGE", 400)
    monkeypatch.setattr(result_sink, "MAX_ALIKE_VALUES", 60)
    monkeypatch.setattr(decide_pairs, "FEW_ROWS", 20)
    assert answers(tmp_path / "few", partitions=1) == usual
    assert answers(tmp_path / "spread", partitions=3) == usual


def test_pieces_hold_everything_once() -> None:
    sizes = np.array([3, 0, 5, 100, 1, 1], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hop_probe, "ROWS_AT_ONCE", 8)
        pieces = list(hop_probe._pieces(sizes))
    assert [place for piece in pieces for place in range(piece.start, piece.stop)] == list(range(len(sizes)))
    assert [int(sizes[piece].sum()) for piece in pieces] == [8, 100, 2]
