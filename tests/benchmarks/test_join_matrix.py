"""The join-matrix that suite `theta` measures against (B10): right answers, and the memory that the model says."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.join_matrix.engine import MatrixEngine
from benchmarks.join_matrix.shape import JoinMatrix
from benchmarks.options import BenchError
from benchmarks.paper_costs.bistream import Biclique, Matrix
from dovetail.kernels.arrow_types import sql_type_of
from dovetail.query.stream import Stream
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("name", pa.string())])
STREAMS = {name: Stream(name, tuple((each.name, sql_type_of(each.type)) for each in SCHEMA)) for name in "ab"}
SELECT = "SELECT a.v AS av, b.v AS bv FROM a JOIN b ON "
EQUALITY = f"{SELECT} a.k = b.k WHERE a.v + b.v > 20"
ROWS, BATCHES = 120, 5


def batches(seed: int = 7, rows: int = ROWS) -> list[dict[str, pa.Table]]:
    """With NULLs in keys and values."""
    rng = Random(seed)

    def value(most: int) -> int | None:
        return None if rng.random() < 0.05 else rng.randrange(most)

    def table() -> pa.Table:
        columns = {
            "k": [value(40) for _ in range(rows)],
            "v": [value(1000) for _ in range(rows)],
            "name": [f"n{rng.randrange(5)}" for _ in range(rows)],
        }
        return pa.table(columns, SCHEMA)

    return [{stream: table() for stream in "ab"} for _ in range(BATCHES)]


def run_matrix(folder: Path, sql: str, tables: list[dict[str, pa.Table]], cells: int) -> MatrixEngine:
    engine = MatrixEngine(folder, sql, STREAMS, cells)
    for each in tables:
        engine.run_batch(each)
    return engine


def sorted_rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(zip(*table.to_pydict().values(), strict=True), key=repr)


def answers_of(engine: MatrixEngine) -> list[tuple[object, ...]]:
    return sorted_rows(pa.concat_tables([pq.read_table(path) for path in engine.result_files]))


@pytest.fixture
def session(tmp_path: Path) -> LocalSession:
    session = LocalSession(tmp_path / "session", partitions=3, key_groups=8)
    for stream in STREAMS:
        session.create_stream(stream, SCHEMA)
    return session


@pytest.mark.parametrize(
    "sql",
    [
        EQUALITY,
        f"{SELECT} a.k = b.k AND a.name = b.name AND a.v < b.v",
        f"{SELECT} abs(a.v - b.v) <= 3",
        f"{SELECT} a.v > b.v + 700 AND a.k + 10 < b.k AND a.name = 'n1'",
        f"{SELECT} (a.v - b.v) * (a.v - b.v) + (a.k - b.k) * (a.k - b.k) <= 40",
    ],
    ids=["key", "keys and range", "band", "inequalities", "similarity"],
)
def test_a_matrix_of_any_shape_answers_as_the_engine(tmp_path: Path, session: LocalSession, sql: str) -> None:
    session.create_query(sql, "q")
    tables = batches()
    for each in tables:
        session.push(each)
    expected = sorted_rows(session.results("q"))
    assert len(expected) > 20
    for cells in (1, 3, 4, 6):
        assert answers_of(run_matrix(tmp_path / str(cells), sql, tables, cells)) == expected


@pytest.mark.parametrize(("cells", "rows", "columns"), [(1, 1, 1), (3, 1, 3), (6, 2, 3), (16, 4, 4)])
def test_it_stores_what_the_model_says(tmp_path: Path, cells: int, rows: int, columns: int) -> None:
    engine = run_matrix(tmp_path / "matrix", EQUALITY, batches(), cells)
    assert (engine.shape.rows, engine.shape.columns) == (rows, columns)
    assert engine.stored_rows == Matrix(rows, columns).stored(ROWS * BATCHES, ROWS * BATCHES)
    files = list((tmp_path / "matrix").glob("cell*/*.arrow"))
    assert engine.stored_bytes == sum(path.stat().st_size for path in files)


@pytest.mark.parametrize(("routing", "subgroups"), [("hash", 16), ("random", 1), ("contrand", 4)])
def test_a_biclique_stores_and_sends_what_the_model_says(tmp_path: Path, routing: str, subgroups: int) -> None:
    """A row is sent to where it is stored, and to the units that it probes."""
    session = LocalSession(tmp_path, partitions=16, key_groups=128, routing=routing)
    for stream in STREAMS:
        session.create_stream(stream, SCHEMA)
    session.create_query("SELECT a.v AS av, b.v AS bv FROM a JOIN b ON a.v = b.v", "q")
    probed = 0
    for batch in range(BATCHES):
        values = range(batch, batch + ROWS)
        rows = pa.table({"k": values, "v": values, "name": ["n"] * ROWS}, SCHEMA)
        session.push({"a": rows, "b": rows}, splits=2)
        progress = session.progress or {}
        probed += sum(unit["probedRows"] for unit in progress["work"]["partitions"])
    stored = sum(store["numRows"] for store in progress["stores"])
    model = Biclique(16, 16, subgroups, subgroups)
    assert stored == model.stored(ROWS * BATCHES, ROWS * BATCHES)
    assert stored + probed == model.sent(ROWS * BATCHES, ROWS * BATCHES)


def test_a_batch_may_bring_few_rows_or_none(tmp_path: Path, session: LocalSession) -> None:
    session.create_query(EQUALITY, "q")
    tables = [*batches(rows=1), *batches(rows=0), *batches(seed=1, rows=30)]
    for each in tables:
        session.push(each)
    assert answers_of(run_matrix(tmp_path / "matrix", EQUALITY, tables, 6)) == sorted_rows(session.results("q"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.k, count(*) FROM a JOIN b ON a.k = b.k GROUP BY a.k",
        "SELECT count(*) FROM a",
        "SELECT a.v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    ],
)
def test_other_queries_are_refused(tmp_path: Path, sql: str) -> None:
    with pytest.raises(BenchError, match="pairs of rows of two relations"):
        MatrixEngine(tmp_path / "matrix", sql, STREAMS, 4)


@pytest.mark.parametrize("count", range(1, 17))
def test_any_two_rows_are_together_in_one_cell(count: int) -> None:
    matrix = JoinMatrix.of(("r", "s"), count)
    assert matrix.rows * matrix.columns == count
    for row in range(matrix.line_count("r")):
        assert len(matrix.cells("r", row)) == matrix.copy_count("r")
        for column in range(matrix.line_count("s")):
            assert len({*matrix.cells("r", row)} & {*matrix.cells("s", column)}) == 1
