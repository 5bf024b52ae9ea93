"""Batches pass the gate one by one; closed, it lets none begin, and shut it never opens again."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from dovetail.core.errors import SessionError
from dovetail.runtime.spark.batch_gate import BatchGate, BatchStopped
from dovetail.runtime.spark.streaming_run import aside

PATIENCE_S = 30.0
SOON_S = 0.1


class Batch:
    """One that stays inside until it may end."""

    def __init__(self, gate: BatchGate) -> None:
        self.began, self.may_end, self.is_over = threading.Event(), threading.Event(), threading.Event()
        self._gate = gate
        self.done = aside(self._run, "batch")

    def _run(self) -> None:
        with self._gate.passed(self.is_over.is_set):
            self.began.set()
            assert self.may_end.wait(PATIENCE_S)

    def end(self) -> None:
        self.may_end.set()
        self.done.result(PATIENCE_S)


@pytest.fixture
def gate() -> BatchGate:
    return BatchGate()


def waits(done: Future[None]) -> bool:
    try:
        done.result(SOON_S)
    except TimeoutError:
        return True
    return False


def closing(gate: BatchGate, inside: Callable[[], object]) -> Future[None]:
    def close() -> None:
        with gate.closed():
            inside()

    return aside(close, "closing")


def test_who_closes_it_waits_for_the_batch_under_way_and_keeps_the_next_one_waiting(gate: BatchGate) -> None:
    batch, is_closed, may_open = Batch(gate), threading.Event(), threading.Event()
    assert batch.began.wait(PATIENCE_S)
    closed = closing(gate, lambda: (is_closed.set(), may_open.wait(PATIENCE_S)))
    assert waits(closed)
    assert not is_closed.is_set()
    batch.end()
    assert is_closed.wait(PATIENCE_S)
    following = Batch(gate)
    assert waits(following.done)
    assert not following.began.is_set()
    may_open.set()
    closed.result(PATIENCE_S)
    assert following.began.wait(PATIENCE_S)
    following.end()


def test_a_shut_gate_lets_out_who_is_inside_and_nobody_in(gate: BatchGate) -> None:
    batch = Batch(gate)
    assert batch.began.wait(PATIENCE_S)
    assert not gate.shut(SOON_S)
    batch.end()
    assert gate.shut(PATIENCE_S)
    following = Batch(gate)
    assert waits(following.done)
    following.is_over.set()
    with pytest.raises(BatchStopped):
        following.done.result(PATIENCE_S)
    assert not following.began.is_set()


def test_who_waits_to_close_it_gives_up_when_it_is_shut(gate: BatchGate) -> None:
    batch = Batch(gate)
    assert batch.began.wait(PATIENCE_S)
    closed = closing(gate, lambda: None)
    assert waits(closed)
    assert not gate.shut(0.0)
    with pytest.raises(SessionError, match="is stopping"):
        closed.result(PATIENCE_S)
    batch.end()


def test_a_batch_that_raises_has_left_it(gate: BatchGate) -> None:
    def fail() -> None:
        with gate.passed(lambda: False):
            assert gate.is_entered_here
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()
    assert not gate.is_entered_here
    assert gate.shut(0.0)


@pytest.fixture
def py4j_log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger="py4j"):
        yield caplog


def test_py4j_logs_errors_of_batches_but_no_stop(py4j_log: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("py4j.clientserver")
    for raised in (BatchStopped(), ValueError("mine")):
        try:
            raise raised
        except Exception:
            logger.exception("There was an exception")
    assert [record.exc_info[0] for record in py4j_log.records if record.exc_info] == [ValueError]


def test_the_text_of_a_stop_is_short_after_the_words_that_spark_searches() -> None:
    try:
        raise BatchStopped
    except BatchStopped:
        text = traceback.format_exc()
    assert len(text.partition("py4j.protocol.Py4JJavaError: An error occurred while calling")[2]) < 200
