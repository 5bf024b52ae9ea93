"""One delivery, without an engine: order, retries, waiting, ending."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from dovetail.engine.delivery.delivery import LONGEST_ERROR, Backoff, Delivery
from dovetail.store.layout import result_file
from dovetail.store.manifest import ResultPart

PATIENCE_S = 30.0
QUICK = Backoff(first_s=0.001, longest_s=0.002)


class Ledger:
    """Committed batches, and a sink that notes what it is given; `fail` says at which deliveries it raises."""

    def __init__(self, *with_answers: int, committed: int | None = None) -> None:
        self.batches = list(with_answers)
        self.committed = max(with_answers, default=-1) if committed is None else committed
        self.given: list[int] = []
        self.marks: list[int] = []
        self.fail: dict[int, BaseException] = {}
        self.open = threading.Event()
        self.open.set()

    def look(self, after: int) -> tuple[int, tuple[ResultPart, ...]]:
        found = next((batch for batch in self.batches if batch > after), None)
        if found is None:
            return self.committed, ()
        return found, (ResultPart("q#1", result_file("q#1", found, 0, "a"), 1, 1),)

    def deliver(self, batch: int, files: tuple[ResultPart, ...]) -> None:
        assert files
        assert self.open.wait(PATIENCE_S)
        self.given.append(batch)
        error = self.fail.pop(len(self.given) - 1, None)
        if error is not None:
            raise error

    def delivery(self, after: int = -1, backoff: Backoff = QUICK) -> Delivery:
        return Delivery("test", after, self.look, self.look, self.deliver, self.marks.append, backoff)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    left = [thread for thread in threading.enumerate() if thread.name == "deliver test"]
    for thread in left:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in left)


def test_batches_come_in_order_after_the_mark_and_each_is_marked_when_it_is_there() -> None:
    ledger = Ledger(2, 3, 7, 9, committed=11)
    delivery = ledger.delivery(after=2)
    assert delivery.delivered_batch == 2
    assert delivery.await_delivered(PATIENCE_S)
    assert ledger.given == ledger.marks == [3, 7, 9]
    assert delivery.delivered_batch == 11


def test_a_failing_sink_gets_the_same_batch_again_until_it_has_it() -> None:
    ledger = Ledger(0, 1, 2)
    ledger.fail = {1: OSError("disk\nfull"), 2: OSError("x" * 10_000)}
    delivery = ledger.delivery()
    assert delivery.await_delivered(PATIENCE_S)
    assert ledger.given == [0, 1, 1, 1, 2]
    assert ledger.marks == [0, 1, 2]
    assert delivery.error is None


@pytest.mark.parametrize(
    "raised", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), BaseException("bare")], ids=repr
)
def test_whatever_a_sink_raises_it_is_tried_again(raised: BaseException) -> None:
    ledger = Ledger(0, 1)
    ledger.fail = {0: raised}
    assert ledger.delivery().await_delivered(PATIENCE_S)
    assert ledger.given == [0, 0, 1]


def test_a_look_that_fails_is_told_and_tried_again_and_ends_nothing() -> None:
    ledger = Ledger(0, 1)
    looks = iter([None, OSError("too many\nfiles"), None, KeyboardInterrupt()])
    told: list[str | None] = []

    def look(after: int) -> tuple[int, tuple[ResultPart, ...]]:
        told.append(delivery.error)
        if (error := next(looks, None)) is not None:
            raise error
        return ledger.look(after)

    delivery = Delivery("test", -1, look, ledger.look, ledger.deliver, ledger.marks.append, QUICK)
    assert delivery.await_delivered(PATIENCE_S)
    assert ledger.given == ledger.marks == [0, 1]
    assert told[2] == "after batch 0, attempt 1: OSError: too many"
    assert delivery.error is None


def test_a_look_that_fails_with_nothing_to_deliver_leaves_no_error_behind() -> None:
    ledger = Ledger(0)
    looks = iter([OSError("gone"), OSError("gone")])

    def look(after: int) -> tuple[int, tuple[ResultPart, ...]]:
        if (error := next(looks, None)) is not None:
            raise error
        return ledger.look(after)

    delivery = Delivery("test", 0, look, ledger.look, ledger.deliver, ledger.marks.append, QUICK)
    assert delivery.await_delivered(PATIENCE_S)
    assert (ledger.given, delivery.error, delivery.delivered_batch) == ([], None, 0)


def test_how_far_it_is_and_its_end_neither_read_nor_fail() -> None:
    def look(_after: int) -> tuple[int, tuple[ResultPart, ...]]:
        raise OSError("damaged")

    ledger = Ledger(0)
    delivery = Delivery("test", 4, look, lambda _: None, ledger.deliver, ledger.marks.append, Backoff(60.0, 60.0))
    assert delivery.delivered_batch == 4
    assert not delivery.await_delivered(0.1)
    assert "damaged" in str(delivery.error)
    delivery.drain()
    assert not delivery.close(PATIENCE_S)


def test_without_a_thread_to_be_had_it_says_so_and_begins_when_it_is_woken_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ledger = Ledger(0)
    delivery = ledger.delivery()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        delivery.wake()
    assert delivery.error == "its thread, attempt 1: RuntimeError: can't start new thread"
    assert delivery.await_delivered(PATIENCE_S)
    assert (ledger.given, delivery.error) == ([0], None)


def test_the_error_says_batch_attempt_and_the_first_line_and_is_short() -> None:
    ledger = Ledger(4)
    ledger.fail = {0: ValueError("no\nstack"), 1: ValueError("y" * 10_000)}
    delivery = ledger.delivery(backoff=Backoff(60.0, 60.0))
    assert not delivery.await_delivered(0.2)
    assert delivery.error == "batch 4, attempt 1: ValueError: no"
    assert delivery.delivered_batch == -1
    assert not delivery.close()
    again = ledger.delivery(backoff=Backoff(60.0, 60.0))
    again.await_delivered(0.2)
    assert again.error is not None
    assert len(again.error) < LONGEST_ERROR + 50
    again.close()


def test_waking_never_waits_for_the_sink_and_news_meanwhile_is_not_lost() -> None:
    ledger = Ledger(0)
    ledger.open.clear()
    delivery = ledger.delivery()
    delivery.wake()
    for batch in range(1, 50):
        ledger.batches.append(batch)
        delivery.wake()
    ledger.open.set()
    assert delivery.await_delivered(PATIENCE_S)
    assert ledger.given == list(range(50))


def test_a_thread_lives_only_while_there_is_something_to_do() -> None:
    delivery = Ledger(0).delivery()
    assert delivery.await_delivered(PATIENCE_S)
    assert delivery._thread is None


def test_draining_delivers_what_is_committed_and_does_not_wait_for_a_broken_sink() -> None:
    healthy = Ledger(0, 1).delivery()
    healthy.drain()
    assert healthy.close(PATIENCE_S)
    ledger = Ledger(0, 1)
    ledger.fail = {0: OSError("gone")}
    broken = ledger.delivery(backoff=Backoff(60.0, 60.0))
    broken.wake()
    assert not broken.await_delivered(0.1)
    broken.drain()
    assert not broken.close(PATIENCE_S)
    assert ledger.given == [0]


def test_a_write_that_outlives_the_delivery_is_not_marked() -> None:
    ledger = Ledger(0, 1)
    ledger.open.clear()
    delivery = ledger.delivery()
    delivery.wake()
    assert not delivery.close(0.05)
    ledger.open.set()
    delivery.wake()
    with delivery._changed:
        assert delivery._changed.wait_for(lambda: delivery._thread is None, PATIENCE_S)
    assert (ledger.given, ledger.marks) == ([0], [])


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(first_s=1.0, longest_s=5.0)
    assert [backoff.pause_s(failures) for failures in (1, 2, 3, 4, 10_000)] == [1.0, 2.0, 4.0, 5.0, 5.0]
