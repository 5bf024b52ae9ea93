"""Why a query has no new answers, said from the figures of real batches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from dovetail.core.silence import AGAIN_S, FIRST_S, Silence, Waiting
from dovetail.engine.delivery.tail import Tail
from dovetail.engine.delivery.waiting_for import waiting_for
from dovetail.testing.faults import Faults
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

PATIENCE_S = 60.0
JOIN = "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k WITHIN 100 SECONDS"
IN_TIME = "a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"
COUNTS = f"SELECT COUNT(*) AS n FROM a JOIN b ON {IN_TIME} GROUP BY window(a.ts, '1 minute')"
UNMET = f"SELECT a.v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {IN_TIME})"


class SetClock:
    def __init__(self) -> None:
        self.now = 1_704_067_300.0  # beside the event times of the rows: later ones would be kept aside

    def __call__(self) -> float:
        return self.now


class Midway(Faults):
    """Calls `look` in every batch after its tasks."""

    look: Callable[[], None] | None = None

    def on_step(self, step: str) -> None:
        if step == "after_run" and self.look is not None:
            self.look()


def text_of(session: LocalSession, query_id: str) -> str:
    return waiting_for(session.engine, query_id).text


def test_a_query_that_has_not_begun_says_with_what_it_begins(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(JOIN, "q")
    assert text_of(session, query.id) == "pending: begins with the first batch"
    bench.push(session)
    later = session.create_query(JOIN + " -- other", "later")
    assert text_of(session, later.id) == "pending: begins with the next batch"


def test_a_batch_that_takes_long_is_named_with_its_seconds(bench: Bench) -> None:
    clock, midway, said = SetClock(), Midway(), list[str]()
    session = bench.open(clock=clock, faults=midway)
    running = session.create_query(JOIN, "running")
    bench.push(session)

    def look() -> None:
        clock.now += 12
        late = session.create_query(JOIN + " -- other", "late")
        said.extend(text_of(session, query.id) for query in (running, late))

    midway.look = look
    bench.push(session)
    assert said == [
        "batch 1 has been running for 12 s",
        "pending: begins with the batch after batch 1, which has been running for 12 s",
    ]


def test_a_stream_without_a_row_is_named(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(JOIN, "q")
    bench.push(session, a=[(1, 1, 0.0)])
    assert text_of(session, query.id) == "no row of stream b has come yet"


def test_rows_that_stay_away_come_late_or_are_not_wanted_are_told_apart(bench: Bench) -> None:
    clock = SetClock()
    session = bench.open(clock=clock)
    query = session.create_query(JOIN.replace(" WITHIN", " WHERE a.v > 100 AND b.v > 100 WITHIN"), "q")
    bench.push(session, a=[(1, 1, 50.0)], b=[(1, 1, 50.0)])
    assert text_of(session, query.id) == "no new row of batch 0 passed the query's conditions"
    bench.push(session, a=[(1, 1, 0.0), (1, 1, 1.0)], b=[(1, 1, 50.0)])
    assert text_of(session, query.id) == "all 2 new rows of a in batch 1 came too late (docs/sql.md)"
    bench.push(session)
    clock.now += 8
    assert text_of(session, query.id) == "no new row of a and b in batch 2, which ended 8 s ago"


def test_rows_that_found_no_partner_are_counted(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(JOIN, "q")
    bench.push(session, a=[(1, 1, 0.0), (2, 1, 0.0)], b=[(3, 1, 0.0)])
    assert text_of(session, query.id) == "3 rows looked up in batch 0, none found a partner"


def test_windows_say_what_must_pass_before_they_close(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(COUNTS, "q")
    bench.push(session, a=[(1, 1, 40.0)], b=[(1, 1, 41.0)])
    expected = "the next window closes when the watermark of b passes 00:01:05; it is at 00:00:41"
    assert text_of(session, query.id) == expected
    bench.push(session, a=[(1, 1, 60.0)], b=[(1, 1, 64.999)])
    assert session.results("q").num_rows == 0
    bench.push(session, b=[(1, 1, 65.0)])
    assert session.results("q").num_rows == 1


def test_rows_without_a_partner_say_when_they_are_answered(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(UNMET, "q")
    bench.push(session, a=[(1, 1, 30.0)], b=[(1, 1, 31.0)])
    said = "rows of a without a partner are answered once the watermark of b is 5 s past them; it is at 00:00:31"
    assert text_of(session, query.id) == said


def test_after_answers_the_next_batch_is_waited_for(bench: Bench) -> None:
    clock = SetClock()
    session = bench.open(clock=clock)
    query = session.create_query(JOIN, "q")
    bench.push(session, a=[(1, 1, 0.0)], b=[(1, 1, 0.0)])
    clock.now += 4
    assert text_of(session, query.id) == "the next batch has not ended yet: the last one did 4 s ago"


def test_a_silence_is_explained_after_a_moment_when_its_reason_changes_and_now_and_then() -> None:
    clock = SetClock()
    silence = Silence(clock)
    first, other = Waiting("pending", "pending"), Waiting("batch 1", "batch 1 has been running for 3 s")
    assert not silence.is_due(first)
    clock.now += FIRST_S
    assert silence.is_due(first)
    assert not silence.is_due(first)
    clock.now += FIRST_S
    assert not silence.is_due(first)
    assert silence.is_due(other)
    clock.now += AGAIN_S
    assert silence.is_due(other)
    silence.heard()
    assert not silence.may_be_due


def test_a_tail_says_why_nothing_comes_and_goes_on(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(JOIN, "q")
    told, said = threading.Event(), list[str]()

    def on_wait(text: str) -> None:
        said.append(text)
        told.set()

    tail = Tail(session.engine, query.id, lambda: False, on_wait=on_wait)
    found: list[int] = []
    reading = threading.Thread(target=lambda: found.extend(row["x"] for row in tail), daemon=True)
    reading.start()
    assert told.wait(PATIENCE_S)
    bench.push(session, a=[(1, 7, 0.0)], b=[(1, 1, 0.0)])
    session.drop_query("q")
    bench.push(session)
    reading.join(PATIENCE_S)
    assert said[0] == "waiting: pending: begins with the first batch"
    assert found == [7]
