"""Answers of queries that come, go, change their sinks and crash: what their sinks get."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from dovetail.core.errors import QueryError, StoreError
from dovetail.engine.control.query_options import QueryOptions
from dovetail.engine.control.sink_spec import SinkSpec
from dovetail.engine.delivery.deliveries import Deliveries
from dovetail.engine.delivery.delivery import Backoff, Delivery
from dovetail.engine.delivery.marks import Delivered, DeliveryMarks
from dovetail.runtime.result_batch import ResultBatch, answers_table
from dovetail.store.layout import manifest_file
from dovetail.testing.faults import SimulatedCrash
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

PATIENCE_S = 30.0
JOIN = "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k WITHIN 100 SECONDS"
Record = tuple[str, int, int, int, int]


class Sinks:
    """By name of format: rows as (query, batch, sequence, x, y). Those in `broken` write, then raise."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Record]] = {}
        self.broken: set[str] = set()

    def write(self, sink: SinkSpec, batch: ResultBatch) -> None:
        table = answers_table(batch.root, batch.output, batch.parts, "UTC")
        columns = [table.column(name).to_pylist() for name in ("x", "y")]
        self.rows.setdefault(sink.format, []).extend(
            (batch.query, batch.batch, sequence, *row) for sequence, row in enumerate(zip(*columns, strict=True))
        )
        if sink.format in self.broken:
            raise OSError("the line went dead")


class Setting:
    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.sinks = Sinks()
        self._stops: list[Callable[[], object]] = []

    def open(self) -> tuple[LocalSession, Deliveries]:
        session = self.bench.open()
        deliveries = Deliveries(session.engine, self.sinks.write, Backoff(0.001, 0.01))
        deliveries.start()
        self._stops.append(lambda: deliveries.stop(0.0))
        return session, deliveries

    def crash(self, session: LocalSession, deliveries: Deliveries) -> None:
        deliveries.stop(0.0)
        session.close()

    def damage_newest_batch(self) -> None:
        newest = max((self.bench.root / "manifests").glob("*.json"))
        newest.write_bytes(b"")

    def push(self, session: LocalSession, number: int) -> None:
        """Batch `number` brings the pair (number, 100 + number)."""
        self.bench.push(session, a=[(number, number, number)], b=[(number, 100 + number, number)])

    def close(self) -> None:
        for stop in self._stops:
            stop()


@pytest.fixture
def setting(bench: Bench) -> Iterator[Setting]:
    setting = Setting(bench)
    yield setting
    setting.close()


def delivery_of(deliveries: Deliveries, query_id: str) -> Delivery:
    found = deliveries.of(query_id)
    assert found is not None
    return found


def row(query_id: str, batch: int) -> Record:
    return query_id, batch, 0, batch, 100 + batch


def test_every_committed_batch_reaches_the_sink_in_order(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query(JOIN, "q", sink="one")
    assert deliveries.of(query.id) is None
    for number in range(4):
        setting.push(session, number)
    delivery = delivery_of(deliveries, query.id)
    assert delivery.await_delivered(PATIENCE_S)
    assert setting.sinks.rows["one"] == [row(query.id, batch) for batch in range(4)]
    assert delivery.delivered_batch == 3
    setting.bench.push(session)
    assert delivery.delivered_batch == 4


def test_answers_that_are_taken_back_come_as_changes(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query("SELECT k AS x, COUNT(*) AS y FROM a GROUP BY k", "q", sink="one")
    brought = []
    deliveries.attach(query.id, lambda table, batch: brought.append((batch, table.to_pydict())), after=-1)
    setting.push(session, 7)
    setting.push(session, 7)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    assert deliveries.stop(PATIENCE_S)
    assert setting.sinks.rows["one"][0] == (query.id, 0, 0, 7, 1)
    assert brought[0] == (0, {"x": [7], "y": [1], "_change": [1]})
    (batch, changes) = brought[1]
    assert batch == 1
    assert sorted(zip(*changes.values(), strict=True)) == [(7, 1, -1), (7, 2, 1)]
    assert session.results("q").to_pydict() == {"x": [7], "y": [2]}


def test_a_restart_goes_on_where_the_last_session_was(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query(JOIN, "q", sink="one")
    setting.push(session, 0)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    deliveries.stop(PATIENCE_S)
    setting.push(session, 1)  # committed, and nobody there to deliver it
    session.close()
    session, deliveries = setting.open()
    setting.push(session, 2)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    assert setting.sinks.rows["one"] == [row(query.id, batch) for batch in range(3)]


def test_a_crash_between_write_and_mark_doubles_rows_under_the_same_sequence(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query(JOIN, "q", sink="one")
    setting.push(session, 0)
    setting.bench.push(session, a=[(7, 7, 1.0), (8, 8, 1.0)], b=[(7, 107, 1.0), (8, 108, 1.0), (8, 109, 1.0)], splits=2)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    setting.crash(session, deliveries)
    DeliveryMarks(setting.bench.root).write(query.id, 0)
    session, deliveries = setting.open()
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    rows = setting.sinks.rows["one"]
    assert rows[1:4] == rows[4:]
    assert len(set(rows)) == 4
    assert sorted(record[3:] for record in set(rows)) == [(0, 100), (7, 107), (8, 108), (8, 109)]


def test_a_broken_sink_delays_neither_batches_nor_other_sinks_and_recovers(setting: Setting) -> None:
    session, deliveries = setting.open()
    setting.sinks.broken = {"bad"}
    good = session.create_query(JOIN, "good", sink="one")
    bad = session.create_query(JOIN, "bad", sink="bad")
    for number in range(3):
        setting.push(session, number)
    assert delivery_of(deliveries, good.id).await_delivered(PATIENCE_S)
    assert not delivery_of(deliveries, bad.id).await_delivered(0.05)
    broken = delivery_of(deliveries, bad.id)
    assert "the line went dead" in str(broken.error)
    assert (broken.delivered_batch, session.engine.head.batch) == (-1, 2)
    assert {record[1] for record in setting.sinks.rows["bad"]} == {0}
    setting.sinks.broken = set()
    assert broken.await_delivered(PATIENCE_S)
    assert (broken.delivered_batch, broken.error) == (2, None)
    assert sorted(set(setting.sinks.rows["bad"])) == [row(bad.id, batch) for batch in range(3)]


def test_a_damaged_old_manifest_ends_no_sink_and_says_so_until_it_is_back(setting: Setting) -> None:
    session, deliveries = setting.open()
    queries = [session.create_query(JOIN, name, sink=name).id for name in ("one", "two")]
    for number in range(3):
        setting.push(session, number)
    assert deliveries.stop(PATIENCE_S)
    session.close()
    path = setting.bench.root / manifest_file(0)
    content = path.read_bytes()
    path.write_bytes(b"")
    session, deliveries = setting.open()
    setting.push(session, 3)
    for query in queries:
        assert not delivery_of(deliveries, query).await_delivered(0.05)
        status = session.engine.queries.status(query, delivery_of(deliveries, query))
        assert (status.delivered_batch, status.committed_batch) == (2, 3)
        assert "manifest b0000000000.json is empty" in str(status.sink_error)
    path.write_bytes(content)
    for query in queries:
        assert delivery_of(deliveries, query).await_delivered(PATIENCE_S)
        status = session.engine.queries.status(query, delivery_of(deliveries, query))
        assert (status.delivered_batch, status.sink_error) == (3, None)
    assert setting.sinks.rows["two"] == [row(queries[1], batch) for batch in range(4)]


def test_a_stop_over_a_damaged_manifest_ends_every_delivery(setting: Setting) -> None:
    session, deliveries = setting.open()
    for name in ("one", "two"):
        session.create_query(JOIN, name, sink=name)
    for number in range(3):
        setting.push(session, number)
    assert deliveries.stop(PATIENCE_S)
    session.close()
    (setting.bench.root / manifest_file(0)).write_bytes(b"")
    session, deliveries = setting.open()
    assert not deliveries.stop(PATIENCE_S)
    assert all(delivery.is_closed for delivery in deliveries._all())


def test_a_mark_that_cannot_be_written_holds_up_no_other_sink(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, deliveries = setting.open()
    first = session.create_query(JOIN, "first", sink="one")
    setting.push(session, 0)
    assert delivery_of(deliveries, first.id).await_delivered(PATIENCE_S)
    second = session.create_query(JOIN, "second", sink="two")

    written = DeliveryMarks.write

    def write(marks: DeliveryMarks, query_id: str, batch: int) -> None:
        if query_id == second.id:
            raise OSError("no space left")
        written(marks, query_id, batch)

    with monkeypatch.context() as patch:
        patch.setattr(DeliveryMarks, "write", write)
        setting.push(session, 1)
        assert deliveries.of(second.id) is None
        assert delivery_of(deliveries, first.id).await_delivered(PATIENCE_S)
        assert setting.sinks.rows["one"] == [row(first.id, batch) for batch in (0, 1)]
    # A batch without answers: what was left is delivered all the same.
    setting.bench.push(session)
    assert delivery_of(deliveries, second.id).await_delivered(PATIENCE_S)
    assert setting.sinks.rows["two"] == [row(second.id, 1)]


def test_what_a_dropped_query_still_had_is_delivered_also_after_a_restart(setting: Setting) -> None:
    session, deliveries = setting.open()
    setting.sinks.broken = {"one"}
    query = session.create_query(JOIN, "q", sink="one")
    setting.push(session, 0)
    setting.push(session, 1)
    session.drop_query("q")
    setting.push(session, 2)
    setting.crash(session, deliveries)
    setting.sinks.broken = set()
    session, deliveries = setting.open()
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    assert sorted(set(setting.sinks.rows["one"])) == [row(query.id, 0), row(query.id, 1)]
    session.close()
    count = len(setting.sinks.rows["one"])
    _, deliveries = setting.open()
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    assert len(setting.sinks.rows["one"]) == count


def test_a_sink_set_later_begins_with_the_batch_of_its_effect(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query(JOIN, "q")
    setting.push(session, 0)
    session.engine.queries.set_options(query.id, {"sink": "one"})
    assert deliveries.of(query.id) is None
    setting.push(session, 1)
    session.engine.queries.set_options(query.id, {"max_results_per_batch": 9})
    setting.push(session, 2)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    assert setting.sinks.rows["one"] == [row(query.id, 1), row(query.id, 2)]


def test_another_sink_takes_over_where_the_old_one_stood_and_none_ends_it(setting: Setting) -> None:
    session, deliveries = setting.open()
    setting.sinks.broken = {"bad"}
    query = session.create_query(JOIN, "q", sink="bad")
    setting.push(session, 0)
    setting.push(session, 1)
    session.engine.queries.set_options(query.id, {"sink": "good"})
    setting.push(session, 2)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    assert setting.sinks.rows["good"] == [row(query.id, batch) for batch in range(3)]
    session.engine.queries.set_options(query.id, {"sink": None})
    setting.push(session, 3)
    assert deliveries.of(query.id) is None
    assert DeliveryMarks(setting.bench.root).read() == {query.id: Delivered(2, 3)}
    session.engine.queries.set_options(query.id, {"sink": "third"})
    setting.push(session, 4)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    assert setting.sinks.rows["third"] == [row(query.id, 4)]


def test_a_mark_stays_until_the_state_before_has_no_sink_either(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query(JOIN, "q", sink="one")
    setting.push(session, 0)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    session.engine.queries.set_options(query.id, {"sink": None})
    setting.push(session, 1)
    setting.crash(session, deliveries)
    session, deliveries = setting.open()
    assert set(DeliveryMarks(setting.bench.root).read()) == {query.id}
    setting.push(session, 2)
    assert DeliveryMarks(setting.bench.root).read() == {}


def test_a_batch_that_took_a_sink_away_and_runs_again_delivers_nothing_twice(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query(JOIN, "q", sink="one")
    for number in range(3):
        setting.push(session, number)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    session.engine.queries.set_options(query.id, {"sink": None})
    setting.push(session, 3)
    setting.crash(session, deliveries)
    setting.damage_newest_batch()
    session, deliveries = setting.open()
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    assert DeliveryMarks(setting.bench.root).read() == {query.id: Delivered(2)}
    setting.push(session, 3)
    assert deliveries.of(query.id) is None
    assert setting.sinks.rows["one"] == [row(query.id, batch) for batch in range(3)]


def test_a_sink_that_comes_back_begins_with_its_effect_even_if_nobody_heard_of_it(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query(JOIN, "q", sink="one")
    setting.push(session, 0)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    session.engine.queries.set_options(query.id, {"sink": None})
    setting.push(session, 1)
    deliveries.stop(PATIENCE_S)
    session.engine.queries.set_options(query.id, {"sink": "two"})
    setting.push(session, 2)  # a crash before anybody hears of it
    session.close()
    session, deliveries = setting.open()
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    assert setting.sinks.rows["two"] == [row(query.id, 2)]


def test_a_function_gets_tables_from_now_on_or_from_a_batch_that_it_names(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query(JOIN, "q")
    setting.push(session, 0)
    from_now: list[Any] = []
    from_first: list[Any] = []
    delivery = deliveries.attach(query.id, lambda table, batch: from_now.append((batch, table.to_pylist())))
    older = deliveries.attach(query.id, lambda _table, batch: from_first.append(batch), after=-1)
    setting.push(session, 1)
    assert delivery.await_delivered(PATIENCE_S)
    assert older.await_delivered(PATIENCE_S)
    assert from_now == [(1, [{"x": 1, "y": 101}])]
    assert from_first == [0, 1]
    assert delivery.close()
    setting.push(session, 2)
    assert older.await_delivered(PATIENCE_S)
    assert ([batch for batch, _ in from_now], from_first) == ([1], [0, 1, 2])


def test_a_function_attached_before_the_first_batch_gets_it(setting: Setting) -> None:
    session = setting.bench.open()
    deliveries = Deliveries(session.engine, setting.sinks.write)
    query = session.create_query(JOIN, "q")
    seen: list[int] = []
    delivery = deliveries.attach(query.id, lambda _table, batch: seen.append(batch))
    deliveries.start()
    setting.push(session, 0)
    assert delivery.await_delivered(PATIENCE_S)
    assert seen == [0]
    deliveries.stop(PATIENCE_S)


def test_a_function_that_raises_gets_the_batch_again(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query(JOIN, "q")
    seen: list[int] = []

    def second_time_lucky(_table: object, batch: int) -> None:
        seen.append(batch)
        if len(seen) == 1:
            raise ValueError("not yet")

    delivery = deliveries.attach(query.id, second_time_lucky)
    setting.push(session, 0)
    assert delivery.await_delivered(PATIENCE_S)
    assert (seen, delivery.error) == ([0, 0], None)


def test_nothing_is_delivered_that_is_not_committed(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query(JOIN, "q", sink="one")
    setting.push(session, 0)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    session._faults.crash_at = "before_manifest"
    with pytest.raises(SimulatedCrash, match="before_manifest"):
        setting.push(session, 1)
    assert delivery_of(deliveries, query.id).await_delivered(PATIENCE_S)
    assert setting.sinks.rows["one"] == [row(query.id, 0)]


def test_a_slow_sink_holds_a_stop_up_for_a_bounded_time(setting: Setting) -> None:
    session, deliveries = setting.open()
    query = session.create_query(JOIN, "q")
    may_end = threading.Event()
    deliveries.attach(query.id, lambda _table, _batch: may_end.wait(PATIENCE_S))
    setting.push(session, 0)
    assert not deliveries.stop(0.05)
    may_end.set()


def test_a_broken_mark_says_how_to_mend_it(setting: Setting) -> None:
    folder = setting.bench.root / "delivered"
    folder.mkdir(parents=True)
    (folder / "q.json").write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        DeliveryMarks(setting.bench.root).read()


def test_a_function_as_sink_is_refused_with_the_way_to_attach_it() -> None:
    with pytest.raises(QueryError, match="foreach_batch"):
        QueryOptions(sink=print)  # type: ignore[arg-type]
