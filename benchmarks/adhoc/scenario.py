"""Requests against a running session at a steady rate, and what they tell."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, pairwise

from benchmarks.adhoc.queries import TemplateQuery
from benchmarks.adhoc.session import AdhocSession, Asked, Batch
from benchmarks.measure import median, percentile


@dataclass(frozen=True)
class Shape:
    """How large a run is; `interval_s` lies between the arrivals of two files while queries grow in number."""

    seconds_of_data: int
    per_second: int
    churned: int
    phase_s: float
    grown: int
    interval_s: float
    registered: int


@dataclass(frozen=True)
class Part:
    """What one half of the suite found; `wrong` by the query's name."""

    figures: Mapping[str, object]
    checked: int
    wrong: Mapping[str, str]


@dataclass
class Scenario:
    """A session with its queries; `live` are those that nobody asked to drop, the oldest first."""

    session: AdhocSession
    queries: Iterator[TemplateQuery]
    per_second: int
    asked: list[Asked] = field(default_factory=list)
    live: list[Asked] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def create(self) -> Asked:
        asked = self.session.create(f"q{next(self._numbers):05d}", next(self.queries))
        self.asked.append(asked)
        self.live.append(asked)
        return asked

    def request(self, is_over: Callable[[], bool], *, with_drops: bool) -> list[Asked]:
        """`per_second` creates a second, each with a drop of the oldest query if asked for."""
        made = []
        due_at = time.perf_counter()
        while not is_over():
            made.append(self.create())
            if with_drops:
                self.session.drop(self.live.pop(0))
            due_at += 1 / self.per_second
            time.sleep(max(0.0, due_at - time.perf_counter()))
        return made

    def settle(self) -> None:
        """Until a batch has everything that was asked for."""
        asked_at = time.time()
        batch = self.session.await_batch(self.session.newest + 1)
        while batch.began_at <= asked_at:
            batch = self.session.await_batch(batch.number + 1)


@contextmanager
def repeating(action: Callable[[], float]) -> Iterator[None]:
    """Have a thread do it again and again, with as many seconds between as it says."""
    is_ended = threading.Event()
    failures: list[Exception] = []

    def work() -> None:
        try:
            while not is_ended.wait(action()):
                pass
        except Exception as error:  # noqa: BLE001 - it is raised where the thread is waited for
            failures.append(error)

    thread = threading.Thread(target=work, name="adhoc-arrivals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_ended.set()
        thread.join()
        if failures:
            raise failures[0]


def deploy_batches(asked: Asked, batches: Mapping[int, Batch]) -> int:
    """1: the query was part of the very next batch that began after the request."""
    created = asked.query.status.created_batch
    if created is None:
        raise ValueError(f"{asked.query.name} never took effect")
    return created - max((b.number for b in batches.values() if b.began_at <= asked.asked_at), default=-1)


def deploy_s(asked: Asked, batches: Mapping[int, Batch]) -> float:
    """From the request to the commit of the first batch with the query."""
    return batches[asked.query.status.created_batch or 0].committed_at - asked.asked_at


def request_figures(asked: Sequence[Asked], batches: Mapping[int, Batch]) -> dict[str, float]:
    deployed = [deploy_batches(each, batches) for each in asked]
    seconds = [deploy_s(each, batches) for each in asked]
    answers_ms = [each.answer_ms for each in asked]
    return {
        "deploy_p50_batches": percentile(deployed, 0.5),
        "deploy_p99_batches": percentile(deployed, 0.99),
        "deploy_p99_s": round(percentile(seconds, 0.99), 3),
        "create_p50_ms": round(percentile(answers_ms, 0.5), 1),
        "create_p99_ms": round(percentile(answers_ms, 0.99), 1),
    }


def rows_per_s(batches: Sequence[Batch]) -> float:
    """From the first batch's commit to the last one's: what lies between batches counts."""
    return sum(batch.rows for batch in batches[1:]) / (batches[-1].committed_at - batches[0].committed_at)


def batch_seconds(batches: Sequence[Batch]) -> dict[str, float]:
    """Medians of a batch, from commit to commit, and of its parts."""
    names = batches[0].progress["durationMs"]
    parts = {name: median([batch.progress["durationMs"][name] for batch in batches]) for name in names}
    whole = median([later.committed_at - one.committed_at for one, later in pairwise(batches)])
    return {"whole": round(whole, 3), **{name: round(ms / 1e3, 3) for name, ms in parts.items()}}
