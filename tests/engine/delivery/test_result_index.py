"""The first look reads all manifests: who waits for that, who does not, and what an error leaves behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dovetail.core.errors import DamagedFile
from dovetail.engine.delivery import result_index
from dovetail.store.layout import manifest_file
from dovetail.store.manifest import Manifest, read_manifests
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

PATIENCE_S = 30.0
JOIN = "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k WITHIN 100 SECONDS"
OTHER = JOIN.replace("100", "99")


class Gate:
    """Takes the place of the reading of manifests: it waits before the first one."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()
        self.times = 0

    def read(self, root: Path, upto: int | None = None) -> Iterator[Manifest]:
        self.times += 1
        self.reached.set()
        assert self.open.wait(PATIENCE_S)
        yield from read_manifests(root, upto)


class Queue:
    """A lock that counts who comes to it."""

    def __init__(self) -> None:
        self.came = threading.Semaphore(0)
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.came.release()
        self._lock.acquire()

    def __exit__(self, *_exc: object) -> None:
        self._lock.release()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(result_index, "read_manifests", gate.read)
    yield gate
    gate.open.set()


@pytest.fixture
def reopened(bench: Bench) -> LocalSession:
    """Three batches of answers, committed by a session before this one."""
    session = bench.open()
    session.create_query(JOIN, "q")
    session.create_query(OTHER, "other")
    for number in range(3):
        push(bench, session, number)
    session.close()
    return bench.open()


def push(bench: Bench, session: LocalSession, number: int) -> None:
    bench.push(session, a=[(number, number, number)], b=[(number, 100 + number, number)])


def xs_of(session: LocalSession) -> list[Any]:
    return sorted(session.results("q").column("x").to_pylist())


def test_changes_looks_and_batches_go_on_while_the_manifests_are_read(
    bench: Bench, reopened: LocalSession, gate: Gate
) -> None:
    query = reopened.engine.queries.named("q")
    assert query is not None
    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(xs_of, reopened)
        assert gate.reached.wait(PATIENCE_S)
        assert pool.submit(reopened.engine.queries.status, query.id).result(PATIENCE_S).committed_batch == 2
        assert pool.submit(reopened.engine.answers.known_after, query.id, -1).result(PATIENCE_S) is None
        pool.submit(reopened.drop_query, "other").result(PATIENCE_S)
        pool.submit(push, bench, reopened, 3).result(PATIENCE_S)
        assert not reading.done()
        gate.open.set()
        # What was committed meanwhile is there, once.
        assert reading.result(PATIENCE_S) == [0, 1, 2, 3]
    push(bench, reopened, 4)
    assert xs_of(reopened) == [0, 1, 2, 3, 4]
    assert gate.times == 1
    after, _ = reopened.engine.answers.results_after(query.id, 2)
    assert after == 3
    assert reopened.engine.answers.results_after(query.id, 4) == (4, ())


def test_who_waits_for_a_reading_that_fails_fails_with_it_and_the_next_one_reads_again(
    bench: Bench, reopened: LocalSession, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queue()
    monkeypatch.setattr(reopened.engine.answers._results, "_reading", queue)
    path = bench.root / manifest_file(0)
    content = path.read_bytes()
    path.write_bytes(b"")
    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(xs_of, reopened) for _ in range(4)]
        assert all(queue.came.acquire(timeout=PATIENCE_S) for _ in readers)
        gate.open.set()
        for reader in readers:
            with pytest.raises(DamagedFile, match=r"manifest b0000000000\.json is empty"):
                reader.result(PATIENCE_S)
    assert gate.times == 1
    with pytest.raises(DamagedFile):
        reopened.results("q")
    path.write_bytes(content)
    assert xs_of(reopened) == [0, 1, 2]
    assert gate.times == 3


@pytest.mark.parametrize("lost", ["the folder", "the newest manifest"])
def test_answers_that_cannot_be_looked_up_are_an_error_and_not_remembered(
    bench: Bench, reopened: LocalSession, lost: str
) -> None:
    path = bench.root / ("manifests" if lost == "the folder" else manifest_file(2))
    kept = path.rename(path.with_name("kept"))
    with pytest.raises(DamagedFile, match=r"manifest b0000000002\.json is missing"):
        reopened.results("q")
    if lost == "the folder":
        path.write_text("a file in its place")
        with pytest.raises(DamagedFile, match="the folder of manifest files cannot be read"):
            reopened.results("q")
        path.unlink()
    kept.rename(path)
    assert xs_of(reopened) == [0, 1, 2]
