"""Vacuum removes what no manifest names, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dovetail.store.vacuum import vacuum
from dovetail.testing.faults import Faults, SimulatedCrash
from tests.support.asserts import open_session
from tests.support.cases import EngineCase, QueryCase, StreamCase, moment_of
from tests.support.faults.runs import read_run
from tests.support.generators.cases import START_US

STREAM = StreamCase("s", (("k", "int"), ("ts", "timestamp")), "ts", 0)
SQL = "SELECT a.k FROM s a JOIN s b ON a.k = b.k"
COUNTS = "SELECT a.k, COUNT(*) AS n FROM s a JOIN s b ON a.k = b.k GROUP BY a.k"
CASE = EngineCase(
    (STREAM,),
    tuple({"s": tuple((k, moment_of(START_US + batch * 1_000_000)) for k in (1, 2, 2))} for batch in range(13)),
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


@dataclass
class _AtEachStep(Faults):
    do: Callable[[], object] = lambda: None

    def on_step(self, step: str) -> None:
        super().on_step(step)
        self.do()


def test_a_vacuum_at_any_step_of_a_batch_takes_nothing_of_it(tmp_path: Path) -> None:
    """Its files may be as old as you like: a long batch, a machine that slept, a clock that jumped."""
    faults = _AtEachStep(do=lambda: vacuum(tmp_path, dry_run=False, retention_s=0.0))
    session = open_session(CASE, tmp_path, faults=faults)
    session.create_query(SQL, name="q")
    session.create_query(COUNTS, name="counts")
    merged = set()
    for batch in range(12):
        session.push(CASE.tables(batch))
        merged |= {meta.store for meta in session.engine.head.state.buckets if meta.lower_batch < meta.upper_batch}
    assert len(merged) > 1, "rows and groups"
    # Of 36 rows 12 have key 1 and 24 have key 2.
    assert session.results("q").num_rows == 12 * 12 + 24 * 24
    session.close()
    again = open_session(CASE, tmp_path)
    again.push(CASE.tables(12))
    assert again.results("q").num_rows == 13 * 13 + 26 * 26
    again.close()
