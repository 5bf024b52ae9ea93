"""Files of a backfill or of the session are damaged or gone, and batches run again: each answer is there once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.store.layout import backfill_dir
from dovetail.testing.faults import Faults
from dovetail.testing.local_history import LocalHistory
from dovetail.testing.local_session import LocalSession

JOIN = "SELECT a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS"
CREATED, PUSHED = 4, 6
FAR = 1000
Rows = Callable[[LocalSession, str], list[tuple[Any, ...]]]


@pytest.fixture
def history() -> LocalHistory:
    return LocalHistory()


def push(bench: Any, session: LocalSession, batch: int) -> None:
    """One row of each stream a batch, a second apart; the value tells the batch."""
    bench.push(session, a=[(1, batch, batch)], b=[(1, batch, batch)])


def begin(bench: Any, session: LocalSession) -> None:
    """Half of the batches are older than the query."""
    for batch in range(PUSHED):
        if batch == CREATED:
            session.create_query(JOIN, "q", backfill=True)
        push(bench, session, batch)


def finish(bench: Any, session: LocalSession) -> None:
    bench.push(session, a=[(8, 0, FAR)], b=[(9, 0, FAR)])
    while session.backfills.step(9):
        pass
    bench.push(session)
    assert session.backfill("q").state == "done"


def pairs(values: int = PUSHED) -> list[tuple[int, int]]:
    return sorted((a, b) for a in range(values) for b in range(values) if abs(a - b) <= 5)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def newest_manifest(root: Path) -> Path:
    return max((root / "manifests").glob("*.json"))


def folder_of(bench: Any) -> Path:
    return bench.root / backfill_dir("q#1")


def of_manifest(folder: Path) -> None:
    flip(newest_manifest(folder))


def of_newest_state(folder: Path) -> None:
    flip(max((folder / "state").glob("*.json")))


def of_all_manifests(folder: Path) -> None:
    shutil.rmtree(folder / "manifests")


def of_adopted_manifest(folder: Path) -> None:
    (folder / "manifests" / "b0000000002.json").unlink()


@pytest.mark.parametrize("lose", [of_manifest, of_newest_state, of_all_manifests, of_adopted_manifest, shutil.rmtree])
@pytest.mark.parametrize("is_all_adopted", [True, False])
def test_a_history_that_lost_files_runs_again_and_what_was_adopted_is_not_adopted_twice(
    bench: Any, rows_of: Rows, history: LocalHistory, lose: Callable[[Path], None], is_all_adopted: bool
) -> None:
    session = bench.open(history=history)
    begin(bench, session)
    session.backfills.step(1)
    session.backfills.step(2)
    bench.push(session)  # batches 0 to 2 are adopted
    if not is_all_adopted:
        session.backfills.step(1)
    session.close()
    lose(folder_of(bench))
    session = bench.open(history=history)
    finish(bench, session)
    assert rows_of(session, "q") == pairs()


def test_a_history_that_begins_anew_ends_a_chunk_where_the_adoption_ended(bench: Any, history: LocalHistory) -> None:
    session = bench.open(history=history)
    begin(bench, session)
    session.backfills.step(3)
    bench.push(session)
    session.close()
    shutil.rmtree(folder_of(bench))
    session = bench.open(history=history)
    while session.backfills.step(9):
        pass
    assert history.runs[1:] == [(0, 1, 2), (3, 4, 5, 6)]


def test_the_batch_that_ended_a_backfill_runs_again_and_the_history_is_still_there(
    bench: Any, rows_of: Rows, history: LocalHistory
) -> None:
    session = bench.open(history=history)
    begin(bench, session)
    session.backfills.step(3)
    finish(bench, session)
    session.backfills.step(1)
    session.close()
    flip(newest_manifest(bench.root))
    runs = list(history.runs)
    session = bench.open(history=history)
    assert session.backfill("q").state == "running"
    finish(bench, session)
    assert rows_of(session, "q") == pairs()
    assert history.runs[: len(runs)] == runs
    assert not {batch for run in history.runs[len(runs) :] for batch in run} & {batch for run in runs for batch in run}


def test_a_batch_that_runs_again_over_other_rows_is_run_again_by_the_history(
    bench: Any, rows_of: Rows, history: LocalHistory
) -> None:
    session = bench.open(history=history)
    begin(bench, session)
    while session.backfills.step(9):
        pass
    session.close()
    flip(newest_manifest(bench.root))
    session = bench.open(history=history)
    # More had come by then, which joins rows from before the query.
    rows = [(1, value, value) for value in (PUSHED - 1, PUSHED)]
    bench.push(session, a=rows, b=rows)
    finish(bench, session)
    assert rows_of(session, "q") == pairs(PUSHED + 1)


def test_a_query_that_is_created_again_by_a_batch_that_runs_again_has_no_history_yet(
    bench: Any, rows_of: Rows, history: LocalHistory
) -> None:
    session = bench.open(history=history)
    for batch in range(CREATED):
        push(bench, session, batch)
    session.create_query(JOIN, "q", backfill=True)
    push(bench, session, CREATED)
    session.backfills.step(2)
    session.close()
    flip(newest_manifest(bench.root))
    session = bench.open(history=history)
    assert bench.files("backfill") == set()
    for batch in range(CREATED, PUSHED):
        push(bench, session, batch)
    finish(bench, session)
    assert rows_of(session, "q") == pairs()


class Meanwhile(Faults):
    """Something happens just before a manifest."""

    def __init__(self) -> None:
        super().__init__()
        self.do: Callable[[], None] = lambda: None

    def on_step(self, step: str) -> None:
        if step == "before_manifest":
            do, self.do = self.do, lambda: None
            do()


def test_a_history_that_goes_back_while_its_chunk_is_adopted_ends_one_there_again(
    bench: Any, rows_of: Rows, history: LocalHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = Meanwhile()
    session = bench.open(history=history, faults=meanwhile)
    begin(bench, session)
    session.backfills.step(2)
    bench.push(session)
    session.backfills.step(1)

    def broken(*_: object) -> None:
        raise OSError("the network is down")

    def go_back() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(history, "run", broken)
            with pytest.raises(OSError, match="network"):
                session.backfills.step(1)
        flip(newest_manifest(folder_of(bench)))
        session.backfills.step(9)

    meanwhile.do = go_back
    bench.push(session)  # adopts batch 2
    finish(bench, session)
    assert rows_of(session, "q") == pairs()
    assert history.runs[:3] == [(0, 1), (2,), (2,)]


def test_what_was_left_of_a_folder_that_was_being_removed_is_no_history(bench: Any, history: LocalHistory) -> None:
    session = bench.open(history=history)
    begin(bench, session)
    session.backfills.step(2)
    session.close()
    folder = folder_of(bench)
    folder.rename(folder.with_name(folder.name + "~"))
    session = bench.open(history=history)
    assert bench.files("backfill") == set()
