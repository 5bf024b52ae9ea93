"""What earlier versions left opens, goes on, and comes to the answers of a session that never stopped."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.small_program import LATER, QUERIES, open_session
from dovetail.engine.control.registry import QueryState
from dovetail.testing.local_session import LocalSession
from tests.support.old_checkpoint import BATCHES_BEFORE, run_first_part, run_second_part

CHECKPOINTS = sorted((Path(__file__).parent / "checkpoints").glob("*.tar.gz"))
NAMES = [*QUERIES, *LATER]


def answers_of(session: LocalSession, name: str) -> list[tuple[Any, ...]]:
    table = session.results(name)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


def test_there_is_a_checkpoint_of_an_earlier_version() -> None:
    assert [path.name for path in CHECKPOINTS] == ["0.1.0.tar.gz"]


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: path.name)
def test_a_checkpoint_of_an_earlier_version_goes_on(path: Path, tmp_path: Path) -> None:
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    fresh = open_session(tmp_path / "fresh")
    run_first_part(fresh)
    old = open_session(tmp_path / "checkpoint")
    assert old.engine.head.batch == BATCHES_BEFORE - 1
    states = {record.name: record.state for record in old.engine.queries.records()}
    assert states == {
        **dict.fromkeys(NAMES, QueryState.RUNNING),
        "dropped": QueryState.DROPPED,
        "broken": QueryState.QUARANTINED,
        "pending": QueryState.PENDING,
    }
    before = {name: answers_of(old, name) for name in NAMES}
    assert before == {name: answers_of(fresh, name) for name in NAMES}
    run_second_part(old)
    run_second_part(fresh)
    after = {name: answers_of(old, name) for name in NAMES}
    assert after == {name: answers_of(fresh, name) for name in NAMES}
    assert {name for name in NAMES if after[name] == before[name]} == {"dropped", "broken"}
    for record in old.engine.queries.records():
        known = fresh.engine.queries.record(record.id)
        assert (record.state, record.complete_from, record.total_rows) == (
            known.state,
            known.complete_from,
            known.total_rows,
        )
    old.close()
    fresh.close()
