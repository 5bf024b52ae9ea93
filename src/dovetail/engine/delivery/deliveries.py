"""All deliveries of a session: one per query with a sink, from the batch on with which the sink took effect.

The committed state says which queries have which sink, marks say how far each is. A sink that takes another's place
goes on where that one stood. A dropped query's answers are still delivered.

The newest batch may be damaged and run again from the state before it. So the mark of a sink that was taken away stays
until the next commit: from that state it goes on where it stood.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from dovetail.core.errors import QueryError
from dovetail.engine.control.registry import QueryRecord, QueryState
from dovetail.engine.control.sink_spec import SinkSpec
from dovetail.engine.delivery.commit_news import CommitNews
from dovetail.engine.delivery.delivery import Backoff, Deliver, Delivery, Mark, no_mark
from dovetail.engine.delivery.marks import Delivered, DeliveryMarks
from dovetail.engine.engine import Engine
from dovetail.query.answer_columns import answer_columns
from dovetail.runtime.result_batch import ResultBatch, TakeBatch, answers_table
from dovetail.store.manifest import ResultPart

_log = logging.getLogger("dovetail")

WriteSink = Callable[[SinkSpec, ResultBatch], None]
"""Writes a batch's answers to a sink; when it returns they are there, when it raises they may be, in part."""


class Deliveries:
    """Thread-safe. Nothing is delivered before `start`: only then are all streams known again after a restart."""

    def __init__(self, engine: Engine, write: WriteSink, backoff: Backoff | None = None) -> None:
        self._engine = engine
        self._write = write
        self._backoff = backoff
        self._marks = DeliveryMarks(engine.root, syncs=engine.options.syncs)
        self._lock = threading.Lock()
        self._by_query: dict[str, Delivery] = {}
        self._functions: dict[str, list[Delivery]] = {}
        self._ended: set[str] = set()
        self._end_listening: Callable[[], None] | None = None

    def start(self) -> None:
        """Go on from the marks, before another batch commits. Starting again changes nothing."""
        if self._end_listening is not None:
            return
        with self._lock:
            for query_id, delivered in self._marks.read().items():
                self._go_on(query_id, delivered)
            self._follow_registry()
            for delivery in self._by_query.values():
                delivery.wake()
        self._end_listening = self._engine.answers.listen(self._on_commit)

    def _go_on(self, query_id: str, delivered: Delivered) -> None:
        """Where the last session was; what a batch that was set aside finds anew is delivered again."""
        newest, ended_batch = self._engine.head.batch, delivered.ended_batch
        after = min(delivered.batch, newest)
        if ended_batch is not None and ended_batch < newest:
            self._marks.remove(query_id)
        elif _sink_of(self._engine.head.state.registry.by_id.get(query_id)) is None:
            self._end(query_id, after)
        else:
            if ended_batch is not None:
                self._marks.write(query_id, after)
            self._by_query[query_id] = self._to_sink(query_id, after)

    def of(self, query_id: str) -> Delivery | None:
        """The delivery to the query's sink; None before a batch knows of that sink."""
        with self._lock:
            return self._by_query.get(query_id)

    @property
    def is_one_of_this_thread(self) -> bool:
        """Whether a delivery calls from within what it delivers to."""
        return any(delivery.is_of_this_thread for delivery in self._all())

    def attach(self, query_id: str, function: TakeBatch, after: int | None = None) -> Delivery:
        """Have `function` called with the answers of every batch later than `after`, by default of those to come."""
        self._engine.queries.record(query_id)

        def deliver(batch: int, parts: tuple[ResultPart, ...]) -> None:
            found = self._result_batch(query_id, batch, parts)
            function(answers_table(found.root, found.output, found.parts, self._engine.options.timezone), batch)

        begin = self._engine.head.batch if after is None else after
        delivery = self._delivery(query_id, "a function", begin, deliver)
        with self._lock:
            open_ones = [one for one in self._functions.get(query_id, []) if not one.is_closed]
            self._functions[query_id] = [*open_ones, delivery]
        delivery.wake()
        return delivery

    def stop(self, timeout_s: float) -> bool:
        """Deliver what is committed, for at most so long; True if nothing is left. What is left waits for a restart."""
        if self._end_listening is not None:
            self._end_listening()
            self._end_listening = None
        open_ones = self._all()
        for delivery in open_ones:
            delivery.drain()
        deadline = time.monotonic() + timeout_s
        are_done = [delivery.close(max(deadline - time.monotonic(), 0.0)) for delivery in open_ones]
        return all(are_done)

    def _all(self) -> list[Delivery]:
        with self._lock:
            return [*self._by_query.values(), *(one for some in self._functions.values() for one in some)]

    def _on_commit(self, news: CommitNews) -> None:
        answered = {result.query for result in news.results}
        with self._lock:
            try:
                for query_id in sorted(self._ended):
                    self._marks.remove(query_id)
                    self._ended.discard(query_id)
                self._follow_registry()
            finally:
                # A mark that cannot be written is tried again with the next commit: the others do not wait for it.
                for query_id in answered:
                    for delivery in self._of_all_kinds(query_id):
                        delivery.wake()

    def _of_all_kinds(self, query_id: str) -> list[Delivery]:
        to_sink = self._by_query.get(query_id)
        return [*([] if to_sink is None else [to_sink]), *self._functions.get(query_id, [])]

    def _follow_registry(self) -> None:
        """Begin where a sink took effect, end where it was taken away or its query is forgotten."""
        records = self._engine.head.state.registry.by_id
        for query_id in [known for known in self._by_query if _sink_of(records.get(known)) is None]:
            delivery = self._by_query.pop(query_id)
            if not delivery.close():
                _log.warning("query %s has no sink any more, and may have answers that were not delivered", query_id)
            self._end(query_id, delivery.delivered_batch)
        accepted = {record.id for record in self._engine.queries.records()} if self._functions else set()
        for query_id in self._functions.keys() - accepted:
            for delivery in self._functions.pop(query_id):
                delivery.close()
        for record in records.values():
            if _sink_of(record) is None or record.id in self._by_query or record.state is QueryState.DROPPED:
                continue
            effect = record.created_batch if record.changed_batch is None else record.changed_batch
            assert effect is not None
            # Written now: a later change of other options must not move the beginning.
            self._marks.write(record.id, effect - 1)
            self._by_query[record.id] = self._to_sink(record.id, effect - 1)
            self._by_query[record.id].wake()

    def _end(self, query_id: str, delivered_batch: int) -> None:
        """The newest state has no such sink; the one before it may."""
        self._marks.write(query_id, delivered_batch, ended_batch=self._engine.head.batch)
        self._ended.add(query_id)

    def _to_sink(self, query_id: str, after: int) -> Delivery:
        def deliver(batch: int, parts: tuple[ResultPart, ...]) -> None:
            sink = _sink_of(self._engine.head.state.registry.by_id.get(query_id))
            if sink is None:
                raise QueryError(f"query {query_id!r} has no sink any more")
            self._write(sink, self._result_batch(query_id, batch, parts))

        def mark(batch: int) -> None:
            self._marks.write(query_id, batch)

        return self._delivery(query_id, "its sink", after, deliver, mark)

    def _delivery(self, query_id: str, to: str, after: int, deliver: Deliver, mark: Mark = no_mark) -> Delivery:
        def look(batch: int) -> tuple[int, tuple[ResultPart, ...]]:
            return self._engine.answers.results_after(query_id, batch)

        def glance(batch: int) -> tuple[int, tuple[ResultPart, ...]] | None:
            return self._engine.answers.known_after(query_id, batch)

        return Delivery(f"query {query_id} to {to}", after, look, glance, deliver, mark, self._backoff)

    def _result_batch(self, query_id: str, batch: int, parts: tuple[ResultPart, ...]) -> ResultBatch:
        output = answer_columns(self._engine.queries.compiled(query_id))
        return ResultBatch(self._engine.root, query_id, batch, output, parts)


def _sink_of(record: QueryRecord | None) -> SinkSpec | None:
    return None if record is None else record.options.sink
