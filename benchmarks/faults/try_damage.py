"""Sessions in one process whose checkpoints are damaged, or lose power: each ends in an error or in exact answers."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.faults.damage import KINDS, Damage, How, damages
from benchmarks.faults.power_loss import Moment, SyncRecorder, Unsynced
from benchmarks.faults.small_program import LATER, QUERIES, SCHEMA, STREAMS, open_session, rows_of
from dovetail.core.errors import DovetailError, StoreError
from dovetail.store.result_parts import forget_checked
from dovetail.testing.local_history import LocalHistory
from dovetail.testing.local_session import LocalSession

BATCHES = 7
DAMAGED_AT = 5
CREATED_LATER_AT = 3
FAR = (100, 101)
"""Batches so much later that every history comes to its end, and is adopted."""
RECORDED_BATCHES = 3
GOES_ON_EVERY = 5
NAMES = ["pairs", "running", "padded", "dropped", "later"]
PENDING = "pending"
PAST, FAILED = "past", "failed backfill"
"""A query with a backfill, and what ended it early."""
PAST_QUERY = "SELECT b.v, c.v AS x FROM b JOIN c ON b.k = c.k AND b.v = c.m WITHIN 6 SECONDS"
ATTEMPTS = 5
BAD_ROWS = "bad rows"
BAD_BATCH = 1
"""One of its rows is of a time that no clock has."""

Answers = dict[str, list[Any]]


@dataclass(frozen=True)
class Outcome:
    """`is_silent`: no error, and other answers than there should be."""

    damage: Damage
    error: str | None
    is_silent: bool
    is_told_well: bool = True


def exact_answers(folder: Path) -> Answers:
    session = _open(folder)
    _run_to_damage(session)
    for batch in range(DAMAGED_AT, BATCHES):
        push(session, batch)
    found = _finished(session)
    session.close()
    return found


def try_stopped(
    folder: Path,
    expected: Answers,
    of_each_kind: int = 2,
    kinds: Iterable[str] = KINDS,
    ways: Sequence[How] = tuple(How),
) -> Iterator[Outcome]:
    """Every kind of file damaged in every way while no session runs."""
    whole = folder / "whole"
    session = _open(whole)
    _run_to_damage(session)
    session.close()
    for number, damage in enumerate(damages(whole, of_each_kind, kinds, ways)):
        root = folder / str(number)
        shutil.copytree(whole, root)
        damage.inflict(root)
        yield _outcome(damage, lambda root=root: _go_on(root), expected)
        shutil.rmtree(root)


def try_running(folder: Path, expected: Answers, of_each_kind: int = 2) -> Iterator[Outcome]:
    """Every kind of file damaged in every way between two batches of a session that goes on, and is opened again."""
    number = 0
    while True:
        root = folder / str(number)
        session = _open(root)
        _run_to_damage(session)
        found = list(damages(root, of_each_kind))
        if number >= len(found):
            session.close()
            return
        # The paths of two runs differ in random parts, their order does not.
        damage = found[number]
        damage.inflict(root)
        yield _outcome(damage, lambda root=root, session=session: _run_on(session, root), expected)
        session.close()
        shutil.rmtree(root)
        number += 1


def record_power_losses(root: Path) -> list[Moment]:
    """A session that syncs: at every sync, and whenever a user is told something, the power may go."""
    with SyncRecorder(root, lambda path: path.startswith(".lock")) as recorder:
        session = open_session(root, durability="power")
        session.create_query(QUERIES["pairs"], "pairs")
        recorder.acknowledge("pairs")
        for batch in range(RECORDED_BATCHES):
            if batch == RECORDED_BATCHES - 1:
                session.create_query(LATER["later"], "later")
                recorder.acknowledge("later")
            push(session, batch)
            recorder.acknowledge(f"batch {batch}")
        session.close()
    return recorder.moments


def lost_after(moment: Moment, folder: Path, unsynced: Unsynced, expected: list[Any]) -> list[str]:
    """What was acknowledged and is not there when the checkpoint is opened again; raises where it does not open.

    Every few moments the session goes on to the end, and its answers must be those of one that never stopped.
    """
    moment.restore(folder, unsynced)
    forget_checked()
    session = open_session(folder)
    try:
        queries = {record.name for record in session.engine.queries.records()}
        batches = {f"batch {batch}" for batch in range(session.engine.head.batch + 1)}
        lost = [what for what in moment.acknowledged if what not in queries | batches]
        if "pairs" in queries:
            found = _rows(session, "pairs")
            if moment.number % GOES_ON_EVERY == 0:
                for batch in range(session.engine.head.batch + 1, RECORDED_BATCHES):
                    push(session, batch)
                lost += [] if _rows(session, "pairs") == expected else ["answers"]
            lost += [] if set(found) <= set(expected) else ["answers so far"]
        return lost
    finally:
        session.close()


def exact_after_power_losses(folder: Path) -> list[Any]:
    session = open_session(folder)
    session.create_query(QUERIES["pairs"], "pairs")
    for batch in range(RECORDED_BATCHES):
        push(session, batch)
    found = _rows(session, "pairs")
    session.close()
    return found


def _outcome(damage: Damage, run: Any, expected: Answers) -> Outcome:
    # A new process has compared nothing yet.
    forget_checked()
    try:
        found = run()
    except StoreError as error:
        return Outcome(damage, str(error), is_silent=False, is_told_well=bool(error.hint) and ":" in error.what)
    except DovetailError as error:
        return Outcome(damage, str(error), is_silent=False, is_told_well=bool(error.hint))
    except Exception as error:  # noqa: BLE001 - not silent, but nobody knows what to do
        return Outcome(damage, repr(error), is_silent=False, is_told_well=False)
    # A batch that was set aside runs again, and what was accepted after it takes effect with it: so there may be more.
    is_late = bool(Counter(expected[PENDING]) - Counter(found[PENDING]))
    failed = found[FAILED]
    is_doubled = bool(Counter(found[PAST]) - Counter(expected[PAST]))
    compared = [*NAMES, BAD_ROWS] if failed else [*NAMES, BAD_ROWS, PAST]
    is_silent = is_late or is_doubled or any(found[name] != expected[name] for name in compared)
    is_told_well = all("at: " in error and "instead: " in error for error in failed)
    return Outcome(damage, failed[0] if failed else None, is_silent=is_silent, is_told_well=is_told_well)


def _open(root: Path) -> LocalSession:
    """Its source can give again what it gave to sessions before this one."""
    history = LocalHistory()
    for batch in range(BATCHES):
        history.note(batch, _tables(batch))
    return open_session(root, history=history)


def _go_on(root: Path) -> Answers:
    session = _open(root)
    try:
        # What is not committed comes again, as from a source that was read no further.
        for batch in range(session.engine.head.batch + 1, BATCHES):
            push(session, batch)
        return _finished(session)
    finally:
        session.close()


def _run_on(session: LocalSession, root: Path) -> Answers:
    for batch in range(DAMAGED_AT, BATCHES):
        _run_history(session)
        push(session, batch)
    session.close()
    forget_checked()
    return _go_on(root)


def _run_to_damage(session: LocalSession) -> None:
    """Then the next batch is still to come, and one query is accepted that no batch knows yet.

    A history has run two chunks, which are adopted, and has one more batch to run.
    """
    for name in NAMES:
        if name in QUERIES:
            session.create_query(QUERIES[name], name)
    for batch in range(DAMAGED_AT):
        if batch == CREATED_LATER_AT:
            session.create_query(LATER["later"], "later")
            session.create_query(PAST_QUERY, PAST, backfill=True)
            session.drop_query("dropped")
        push(session, batch)
        if batch == CREATED_LATER_AT:
            for _ in range(CREATED_LATER_AT - 1):
                session.backfills.step(1)
    session.create_query(LATER[PENDING], PENDING)


def _finished(session: LocalSession) -> Answers:
    for batch in FAR:
        push(session, batch)
        _run_history(session)
    push(session, FAR[-1])
    kept_aside = sorted((row.batch, row.reason, repr(row.values)) for row in session.bad_rows(STREAMS[0]))
    backfill = session.backfill(PAST)
    assert backfill is not None
    answers = {name: _rows(session, name) for name in [*NAMES, PENDING, PAST]}
    return answers | {BAD_ROWS: kept_aside, FAILED: [] if backfill.error is None else [backfill.error]}


def _run_history(session: LocalSession) -> None:
    """As its thread does: what fails is noted with the backfill, and tried again."""
    for _ in range(ATTEMPTS):
        with suppress(DovetailError):
            while session.backfills.step(BATCHES):
                pass
            return


def push(session: LocalSession, batch: int) -> None:
    session.push(_tables(batch), splits=2)


def _tables(batch: int) -> dict[str, pa.Table]:
    tables = {stream: rows_of(batch, stream) for stream in STREAMS}
    if batch == BAD_BATCH:
        tables[STREAMS[0]] = pa.concat_tables([tables[STREAMS[0]], _impossible_row()])
    return tables


def _impossible_row() -> pa.Table:
    values = [pa.array([1], field.type) for field in SCHEMA][:-1]
    return pa.Table.from_arrays([*values, pa.array([1 << 62]).view(SCHEMA.field("ts").type)], schema=SCHEMA)


def _rows(session: LocalSession, name: str) -> list[Any]:
    table = session.results(name)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)
