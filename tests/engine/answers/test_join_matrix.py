"""The join-matrix layout (B10): right answers, the memory that the model says, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from benchmarks.paper_costs.bistream import Biclique, Matrix
from dovetail.core.errors import QueryError, SessionError
from dovetail.engine.explain.explain import explain_plan
from dovetail.plan.join_matrix import JoinMatrix
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
TIMED = pa.schema([*SCHEMA, ("ts", pa.timestamp("us", "UTC"))])
SQL = "SELECT a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k WHERE a.v + b.v > 20"
ROWS, BATCHES = 200, 6


def open_session(folder: Path, streams: str = "ab", **options: object) -> LocalSession:
    session = LocalSession(folder, **{"key_groups": 128, "merge_fanout": 2, **options})
    for stream in streams:
        session.create_stream(stream, SCHEMA)
    return session


def run(session: LocalSession, streams: str = "ab") -> tuple[list[tuple[int, int]], dict[str, int]]:
    """The answers, and rows stored at the end, written and sent in all batches."""
    rng = Random(7)
    session.create_query(SQL, "q")
    rows = {"stored": 0, "written": 0, "probed": 0}
    for batch in range(BATCHES):
        tables = {
            stream: pa.table({"k": [rng.randrange(40) for _ in range(ROWS)], "v": range(batch, ROWS + batch)}, SCHEMA)
            for stream in streams
        }
        session.push(tables, splits=2)
        progress = session.progress or {}
        rows["stored"] = sum(store["numRows"] for store in progress["stores"])
        rows["written"] += progress["written"]["numRows"]
        rows["probed"] += sum(unit["probedRows"] for unit in progress["work"]["partitions"])
    answers = session.results("q").to_pydict()
    return sorted(zip(answers["av"], answers["bv"], strict=True)), rows


@pytest.mark.parametrize(("partitions", "rows", "columns"), [(1, 1, 1), (3, 1, 3), (6, 2, 3), (16, 4, 4)])
def test_a_matrix_answers_the_same_and_stores_what_the_model_says(
    tmp_path: Path, partitions: int, rows: int, columns: int
) -> None:
    expected, once = run(open_session(tmp_path / "once", partitions=partitions))
    answers, matrix = run(open_session(tmp_path / "matrix", partitions=partitions, layout="join_matrix"))
    assert answers == expected
    input_rows = ROWS * BATCHES
    model = Matrix(rows, columns)
    assert once["stored"] == Biclique(partitions, partitions, 1, 1).stored(input_rows, input_rows) == 2 * input_rows
    assert matrix["stored"] == matrix["written"] == model.stored(input_rows, input_rows)
    assert matrix["stored"] / once["stored"] == model.stored(1, 1) / 2


def test_sixteen_units_store_four_times_as_much_as_ours(tmp_path: Path) -> None:
    stored = {}
    for layout in ("join_biclique", "join_matrix"):
        session = open_session(tmp_path / layout, partitions=16, layout=layout)
        stored[layout] = run(session)[1]["stored"]
    assert stored["join_matrix"] / stored["join_biclique"] == 4.0


@pytest.mark.parametrize(("routing", "subgroups"), [("hash", 16), ("random", 1), ("contrand", 4)])
def test_what_a_biclique_sends_is_what_the_model_says(tmp_path: Path, routing: str, subgroups: int) -> None:
    """A row is sent to where it is stored, and to the units that it probes."""
    _, rows = run(open_session(tmp_path, partitions=16, routing=routing))
    input_rows = ROWS * BATCHES
    model = Biclique(16, 16, subgroups, subgroups)
    assert rows["stored"] + rows["probed"] == model.sent(input_rows, input_rows)


def test_cells_exchange_nothing_and_merge_only_their_own(tmp_path: Path) -> None:
    session = open_session(tmp_path, partitions=4, layout="join_matrix")
    run(session)
    merged = [meta for meta in session.engine.state.buckets if meta.level]
    assert {meta.cell.number for meta in merged if meta.cell} == {0, 1, 2, 3}
    assert all(meta.cell is not None and meta.cell.total == 4 for meta in session.engine.state.buckets)
    assert "routed by join-matrix of 2 x 2 cells" in explain_plan(session.engine)


def test_statistics_speak_of_rows_however_often_they_are_stored(tmp_path: Path) -> None:
    """And however many units they probe."""
    values = []
    options: list[dict[str, str]] = [{"layout": "join_matrix"}, {}, {"routing": "random"}, {"routing": "contrand"}]
    for place, each in enumerate(options):
        session = open_session(tmp_path / str(place), partitions=6, **each)
        run(session)
        tallies = session.engine.statistics.observed.tallies
        values.append({str(figure): tally.part / tally.whole for figure, tally in tallies.items()})
        assert any("rows meet by" in figure for figure in values[-1])
        assert values[-1] == pytest.approx(values[0])


def test_old_rows_go_from_every_cell(tmp_path: Path) -> None:
    session = LocalSession(tmp_path, partitions=4, key_groups=8, layout="join_matrix")
    for stream in "ab":
        session.create_stream(stream, TIMED, event_time="ts")
    session.create_query(f"{SQL} AND a.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts + INTERVAL 1 SECOND", "q")
    for batch in range(8):
        times = pa.array([batch * 10_000_000] * 10, pa.timestamp("us", "UTC"))
        session.push({s: pa.table({"k": range(10), "v": range(10, 20), "ts": times}, TIMED) for s in "ab"})
    assert sum(meta.rows for meta in session.engine.state.buckets) <= 2 * 2 * 2 * 10
    assert session.results("q").num_rows == 72


def test_a_batch_that_comes_again_adds_nothing(tmp_path: Path) -> None:
    session = open_session(tmp_path, partitions=4, layout="join_matrix")
    answers, _ = run(session)
    session.redeliver()
    session.close()
    again = open_session(tmp_path, partitions=4, layout="join_matrix")
    assert again.results("q").num_rows == len(answers)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.v FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k",
        "SELECT x.v FROM a x JOIN a y ON x.k = y.k",
        "SELECT a.k, count(*) FROM a JOIN b ON a.k = b.k GROUP BY a.k",
        "SELECT count(*) FROM a",
        "SELECT a.v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    ],
)
def test_other_queries_are_refused(tmp_path: Path, sql: str) -> None:
    session = open_session(tmp_path, "abc", layout="join_matrix")
    with pytest.raises(QueryError, match=r"(?s)two different streams.*join_biclique"):
        session.create_query(sql, "q")


def test_a_matrix_has_one_pair_of_sides(tmp_path: Path) -> None:
    session = open_session(tmp_path, "abc", layout="join_matrix")
    session.create_query(SQL, "q")
    session.create_query("SELECT a.v FROM b JOIN a ON a.k = b.k", "other")
    with pytest.raises(QueryError, match="sides a and b, not b and c"):
        session.create_query("SELECT b.v FROM b JOIN c ON b.k = c.k", "third")
    for name in ("q", "other"):
        session.drop_query(name)
    session.create_query("SELECT b.v FROM b JOIN c ON b.k = c.k", "third")


def test_a_checkpoint_keeps_its_layout(tmp_path: Path) -> None:
    matrix = open_session(tmp_path / "matrix", partitions=4, layout="join_matrix")
    once = open_session(tmp_path / "once", partitions=4)
    for session in (matrix, once):
        run(session)
        session.close()
    with pytest.raises(SessionError, match="made with layout 'join_matrix' and 4 partitions"):
        open_session(tmp_path / "matrix", partitions=4)
    with pytest.raises(SessionError, match="made with 4 partitions"):
        open_session(tmp_path / "matrix", partitions=6, layout="join_matrix")
    with pytest.raises(SessionError, match="made with layout 'join_biclique'"):
        open_session(tmp_path / "once", partitions=4, layout="join_matrix")
    with pytest.raises(SessionError, match="no routing"):
        open_session(tmp_path / "new", layout="join_matrix", routing="hash")


@pytest.mark.parametrize("count", range(1, 17))
def test_any_two_rows_are_together_in_one_cell(count: int) -> None:
    matrix = JoinMatrix.of(("r", "s"), count)
    assert matrix.rows * matrix.columns == count
    for row in range(matrix.line_count("r")):
        assert len(matrix.cells("r", row)) == matrix.copy_count("r")
        for column in range(matrix.line_count("s")):
            assert len({*matrix.cells("r", row)} & {*matrix.cells("s", column)}) == 1
