"""What must not grow faster than the number of queries, and what must not wait for it.

Calls are counted, not seconds: the same on every machine.
"""

from __future__ import annotations

import cProfile
import pstats
import threading
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.adhoc.queries import template_queries
from benchmarks.data.workloads import ATTRIBUTE_COUNT, STREAM_NAMES
from dovetail.engine.control import coverage
from dovetail.engine.explain.explain import explain_query
from dovetail.optimizer.passes import share_probe_prefixes
from dovetail.optimizer.passes.choose_probe_orders import ProbeOrder, choose_probe_order
from dovetail.plan.live_query import LiveQuery
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        *((f"x{i}", pa.int32()) for i in range(ATTRIBUTE_COUNT)),
    ]
)
FEW, MANY = 15, 60


class Crowd:
    """A session with many queries of AJoin's template; batches bring a row of each stream."""

    def __init__(self, folder: Path, queries: int) -> None:
        self.session = LocalSession(folder)
        for stream in STREAM_NAMES:
            self.session.create_stream(stream, SCHEMA, "ts", "1 second")
        self._templates = template_queries(20_000, 1, 0.5)
        self._numbers = count()
        self._seconds = count()
        self.names = [self.create() for _ in range(queries)]

    def create(self) -> str:
        name = f"q{next(self._numbers)}"
        self.session.create_query(next(self._templates).sql, name)
        return name

    def push(self) -> None:
        second = next(self._seconds)
        row = {"id": second, "ts": second * 1_000_000} | {f"x{i}": second for i in range(ATTRIBUTE_COUNT)}
        self.session.push({stream: pa.Table.from_pylist([row], SCHEMA) for stream in STREAM_NAMES})

    def replace_some(self, number: int) -> None:
        for _ in range(number):
            self.session.drop_query(self.names.pop(0))
            self.names.append(self.create())


def calls(action: Callable[[], object]) -> int:
    profile = cProfile.Profile()
    profile.runcall(action)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def crowds(tmp_path: Path) -> list[Crowd]:
    found = [Crowd(tmp_path / str(size), size) for size in (FEW, MANY)]
    for crowd in found:
        for _ in range(3):
            crowd.push()
    return found


def test_a_batch_costs_in_proportion_to_the_queries(tmp_path: Path) -> None:
    few, many = (calls(crowd.push) for crowd in crowds(tmp_path))
    assert many < 2 * few * MANY / FEW


def test_a_batch_with_new_queries_costs_in_proportion_to_the_queries(tmp_path: Path) -> None:
    found = crowds(tmp_path)
    for crowd in found:
        crowd.replace_some(5)
    few, many = (calls(crowd.push) for crowd in found)
    assert many < 2 * few * MANY / FEW


def test_accepting_a_query_costs_the_same_whatever_runs(tmp_path: Path) -> None:
    few, many = (calls(crowd.create) for crowd in crowds(tmp_path))
    assert many < 2 * few


def test_accepting_a_change_costs_the_same_whatever_is_pending(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path / "c", 4)
    few = calls(lambda: crowd.session.drop_query(crowd.names.pop()))
    for _ in range(80):
        crowd.create()
    assert calls(lambda: crowd.session.drop_query(crowd.names.pop())) < 2 * few


def test_queries_that_come_and_go_leave_no_trace_in_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "SEGMENTS_KEPT", 5)
    crowd = Crowd(tmp_path / "c", 10)
    sizes = []
    for _ in range(36):
        crowd.replace_some(2)
        crowd.push()
        histories = crowd.session.engine.head.state.histories
        sizes.append(max(len(history.segments) for history in histories.values()))
    assert max(sizes) < 30
    assert max(sizes[24:]) <= max(sizes[:24])


def test_a_query_is_accepted_while_a_plan_is_being_made(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path / "c", 3)
    crowd.push()
    created = threading.Thread(target=crowd.create, daemon=True)
    with crowd.session.engine.plans.lock:
        created.start()
        created.join(timeout=20)
        assert not created.is_alive()


def test_a_new_query_gives_the_others_no_reason_to_go_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = Crowd(tmp_path / "c", 20)
    for _ in range(8):
        crowd.push()
    before = crowd.session.engine.plans.planned()
    chosen = []

    def choose(live: LiveQuery, *arguments: Any) -> ProbeOrder:
        chosen.append(live.name)
        return choose_probe_order(live, *arguments)

    monkeypatch.setattr(share_probe_prefixes, "choose_probe_order", choose)
    name = crowd.create()
    after = crowd.session.engine.plans.planned()
    assert set(chosen) == {name}
    assert dict(before.orders).items() <= dict(after.orders).items()


@pytest.mark.parametrize("batches", [1, 3])
def test_every_query_of_a_crowd_can_be_explained(tmp_path: Path, batches: int) -> None:
    """Also those whose uses of a join are in another group than the first."""
    crowd = Crowd(tmp_path / "c", 24)
    for _ in range(batches):
        crowd.push()
    for record in islice(crowd.session.engine.queries.records(), 0, None, 4):
        assert record.name in explain_query(crowd.session.engine, record.id)


def test_results_are_found_once_whenever_they_are_first_asked_for(tmp_path: Path) -> None:
    join = "SELECT a.id FROM a JOIN b ON a.x0 = b.x0 AND a.ts BETWEEN b.ts AND b.ts"
    crowd = Crowd(tmp_path / "c", 0)
    crowd.session.create_query(join, "one")
    for rows in (1, 2):
        crowd.push()
        assert crowd.session.results("one").num_rows == rows
    crowd.session.close()
    again = Crowd(tmp_path / "c", 0)
    again.push()
    again.push()
    assert again.session.results("one").num_rows >= 2
    found = again.session.results("one").num_rows
    again.session.close()
    assert Crowd(tmp_path / "c", 0).session.results("one").num_rows == found
