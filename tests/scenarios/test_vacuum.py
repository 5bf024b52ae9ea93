"""Vacuum removes what no manifest names, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.testing.faults import Faults, SimulatedCrash
from tests.support.asserts import open_session
from tests.support.cases import EngineCase, QueryCase, StreamCase, moment_of
from tests.support.faults.runs import read_run
from tests.support.generators.cases import START_US

STREAM = StreamCase("s", (("k", "int"), ("ts", "timestamp")), "ts", 0)
SQL = "SELECT a.k FROM s a JOIN s b ON a.k = b.k"
CASE = EngineCase(
    (STREAM,),
    tuple({"s": tuple((k, moment_of(START_US + batch * 1_000_000)) for k in (1, 2, 2))} for batch in range(6)),
    (QueryCase("q", SQL, SQL, SQL),),
)


def files_in(checkpoint_dir: Path) -> set[Path]:
    folders = ("buckets", "results", "answers", "state")
    return {p for folder in folders for p in (checkpoint_dir / folder).rglob("*") if p.is_file()}


def test_orphans_of_retried_tasks_go_and_everything_named_stays(tmp_path: Path) -> None:
    session = open_session(CASE, tmp_path, faults=Faults(retry_tasks=True))
    session.create_query(SQL, name="q")
    for batch in range(3):
        session.push(CASE.tables(batch))
    before, answers = files_in(tmp_path), read_run(session)
    planned = session.vacuum(dry_run=True)
    assert planned.is_dry_run
    assert files_in(tmp_path) == before
    removed = session.vacuum()
    assert removed.paths == planned.paths
    assert {path.partition("/")[0] for path in removed.paths} >= {"buckets", "answers"}
    assert files_in(tmp_path) == before - {tmp_path / path for path in removed.paths}
    assert session.vacuum().paths == ()
    assert read_run(session) == answers
    session.push(CASE.tables(3))
    session.close()


@pytest.mark.parametrize("step", ["after_run", "before_manifest", "after_manifest"])
def test_what_a_crash_left_goes_and_the_session_goes_on(tmp_path: Path, step: str) -> None:
    session = open_session(CASE, tmp_path)
    session.create_query(SQL, name="q")
    session.push(CASE.tables(0))
    session.close()
    crashing = open_session(CASE, tmp_path, faults=Faults(crash_at=step))
    with pytest.raises(SimulatedCrash):
        crashing.push(CASE.tables(1))
    crashing.close()
    again = open_session(CASE, tmp_path)
    again.vacuum()
    named = files_in(tmp_path)
    if step != "after_manifest":
        again.push(CASE.tables(1))
    again.push(CASE.tables(2))
    # Batches of 3 rows with key 1 once and key 2 twice: after three batches 3 * 3 + 6 * 6 pairs.
    assert again.results("q").num_rows == 9 + 36
    assert named
    again.close()


def test_a_vacuum_of_a_clean_checkpoint_removes_nothing(tmp_path: Path) -> None:
    session = open_session(CASE, tmp_path)
    session.create_query(SQL, name="q")
    for batch in range(6):
        session.push(CASE.tables(batch))
        assert session.vacuum(dry_run=True).paths == ()
    session.close()
