"""Progress is never older than the answers that can be read."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from dovetail.testing.faults import Faults

if TYPE_CHECKING:
    from conftest import Bench

PATIENCE_S = 60.0
JOIN = "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k WITHIN 100 SECONDS"


class Gate(Faults):
    """A batch that put its manifest waits here until it may go on."""

    def __post_init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def on_step(self, step: str) -> None:
        if step == "after_manifest":
            self.reached.set()
            self.opened.wait(PATIENCE_S)


def test_whoever_sees_the_answers_of_a_batch_gets_its_progress(bench: Bench) -> None:
    gate = Gate()
    session = bench.open(faults=gate)
    query = session.create_query(JOIN, "q")
    pushing = threading.Thread(target=lambda: bench.push(session, a=[(1, 7, 0.0)], b=[(1, 1, 0.0)]))
    pushing.start()
    assert gate.reached.wait(PATIENCE_S)
    seen: list[Any] = []
    reading = threading.Thread(target=lambda: seen.append(session.progress))
    # Who has the lock of plans keeps the batch from being told, not from being committed.
    with session.engine.plans.lock:
        gate.opened.set()
        while query.status.total_rows < 1:
            pushing.join(0.01)
        assert session.engine.head.figures is None
        reading.start()
    reading.join(PATIENCE_S)
    pushing.join(PATIENCE_S)
    assert seen[0]["batchId"] == 0
    assert seen[0]["queries"][0]["totalOutputRows"] == 1
