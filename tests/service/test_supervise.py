"""A session that fails is started again, and says why; changes are taken meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dovetail.core.errors import SessionError
from dovetail.engine.delivery.delivery import Backoff
from dovetail.service import supervise
from dovetail.service.app import make_app
from dovetail.service.config.options import ServiceOptions
from dovetail.service.supervise import Supervisor
from tests.service.conftest import SCHEMA, table_of
from tests.support.served_local import ServedLocalSession

PATIENCE_S = 60
SQL = "SELECT a.k FROM a JOIN b ON a.k = b.k WITHIN 10 SECONDS"


class Restarted(ServedLocalSession):
    """`failures` are raised by one start after the other; the start that follows them runs."""

    def __init__(self, folder: Path, failures: list[Exception]) -> None:
        super().__init__(folder)
        for name in ("a", "b"):
            self.local.create_stream(name, SCHEMA, event_time="ts")
        self.failures = failures
        self.runs = threading.Event()

    def start(self) -> None:
        self._failure = None
        self._ended.clear()
        if self.failures:
            raise self.failures.pop(0)
        self.runs.set()


class Asked:
    """Remembers for how long it was waited."""

    def __init__(self) -> None:
        self.made = threading.Event()
        self.pauses: list[float] = []
        self.on_pause = lambda: None

    def wait(self, seconds: float) -> bool:
        if seconds:
            self.pauses.append(seconds)
            self.on_pause()
        return self.made.wait(min(seconds, 0.01))


class World:
    def __init__(self, folder: Path, *failures: Exception) -> None:
        self.session = Restarted(folder / "checkpoint", list(failures))
        self.service = make_app(self.session, ServiceOptions(folder / "service"), is_supervised=True).state.service
        self.stop = Asked()
        self.is_lost = False

    def run(self, **given) -> None:
        backoff = Backoff(first_s=1.0, longest_s=4.0)
        Supervisor(self.session, self.service, self.stop, backoff=backoff, is_lost=lambda: self.is_lost, **given).run()

    def running(self) -> threading.Thread:
        thread = threading.Thread(target=self.run)
        thread.start()
        assert self.session.runs.wait(PATIENCE_S)
        return thread

    def end(self, thread: threading.Thread) -> None:
        self.stop.made.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        self.session.stop()
        self.service.audit.close()


def test_a_start_that_fails_is_tried_again_after_ever_longer_pauses(tmp_path, caplog):
    errors = [SessionError(f"cause {number}", hint="do this") for number in range(4)]
    world = World(tmp_path, *errors)
    assert world.service.health.state == "starting"
    seen = []
    world.stop.on_pause = lambda: seen.append(world.service.health)
    world.end(world.running())
    assert world.stop.pauses == [1.0, 2.0, 4.0, 4.0]
    assert [(health.state, health.error, health.hint, health.failures) for health in seen] == [
        ("failed", f"cause {number}", "do this", number + 1) for number in range(4)
    ]
    assert world.service.health.state == "running"
    assert "the session failed: cause 0 (do this); it starts again in 1 s (failure 1)" in caplog.text


def test_a_query_that_is_dropped_while_the_session_is_down_is_gone_when_it_is_up(tmp_path):
    world = World(tmp_path)
    bad = world.session.create_query(SQL, "bad")
    thread = world.running()
    world.session.push({"a": table_of([(1, 1, 0)]), "b": table_of([(1, 1, 0)])})
    world.session.runs.clear()
    world.stop.on_pause = lambda: world.session.engine.queries.drop(bad.id)
    world.session.fail(SessionError("of the query 'bad'"))
    assert world.session.runs.wait(PATIENCE_S)
    world.session.push({"a": table_of([(2, 1, 0)]), "b": table_of([(2, 1, 0)])})
    assert world.session.engine.queries.record(bad.id).total_rows == 1
    world.end(thread)


def _health_after_a_failure(world: World, mend: Callable[[], None]) -> list[str]:
    """Of a session that ran, failed and started again: before and after it was mended."""
    thread = world.running()
    world.session.runs.clear()
    world.session.fail(SessionError("a row that nobody can read"))
    assert world.session.runs.wait(PATIENCE_S)
    time.sleep(3 * supervise._LOOK_EVERY_S)
    before = world.service.health
    assert (before.error, before.retry_in_s) == ("a row that nobody can read", None)
    mend()
    deadline = time.monotonic() + PATIENCE_S
    while world.service.health == before and time.monotonic() < deadline:
        time.sleep(0.05)
    after = world.service.health.state
    world.end(thread)
    return [before.state, after]


def test_a_session_that_failed_is_well_once_a_batch_is_committed(tmp_path):
    world = World(tmp_path)
    rows = {"a": table_of([(1, 1, 0)]), "b": table_of([(1, 1, 0)])}
    assert _health_after_a_failure(world, lambda: world.session.push(rows)) == ["failed", "running"]


def test_a_session_that_failed_is_well_if_it_has_nothing_to_do(tmp_path, monkeypatch):
    world = World(tmp_path)
    health = _health_after_a_failure(world, lambda: monkeypatch.setattr(supervise, "QUIET_S", 0.0))
    assert health == ["failed", "running"]


def test_what_a_worker_raised_is_the_cause_and_not_what_spark_wraps_around_it(tmp_path):
    wrapped = RuntimeError(
        "[STREAM_FAILED] Query terminated: An exception was thrown from the Python worker. SQLSTATE: XXKST\n"
        "Traceback (most recent call last):\n  File x\nZeroDivisionError: of query 'ratio'\n\n\tat org.apache.spark"
    )
    world = World(tmp_path, wrapped)
    seen = []
    world.stop.on_pause = lambda: seen.append(world.service.health)
    world.end(world.running())
    assert seen[0].error == "a batch failed in a worker: ZeroDivisionError: of query 'ratio'"
    assert "drop the query" in seen[0].hint


def test_a_failure_that_no_start_can_mend_ends_the_process(tmp_path):
    world = World(tmp_path, SessionError("Spark has gone"))
    world.is_lost = True
    with pytest.raises(SessionError, match="Spark has gone"):
        world.run()
    world.session.stop()
    world.service.audit.close()


def test_what_is_prepared_is_prepared_once_and_part_of_what_is_tried_again(tmp_path):
    world = World(tmp_path, SessionError("later"))
    calls = []

    def prepare() -> None:
        calls.append(len(calls))
        if len(calls) == 1:
            raise SessionError("at first")

    thread = threading.Thread(target=world.run, kwargs={"prepare": prepare})
    thread.start()
    assert world.session.runs.wait(PATIENCE_S)
    world.end(thread)
    assert calls == [0, 1]
