"""Answers as they are committed, pulled by whoever wants them: the committed files are the buffer.

    look for the next batch with answers  ->  hand it on  ->  look again ...
                |  none: wait for a commit, or for the end of the query or the session

So a slow reader costs no memory, and holds back nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from dovetail.core.answer_batch import AnswerBatch
from dovetail.core.errors import UnknownQuery
from dovetail.core.silence import OnWait, Silence, say_on_stderr
from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.delivery.waiting_for import waiting_for
from dovetail.engine.engine import Engine
from dovetail.query.answer_columns import answer_columns
from dovetail.runtime.result_batch import answers_table

LOOK_EVERY_S = 0.1
DROPPED, REPLACED, STOPPED = "dropped", "replaced", "stopped"

HasEnded = Callable[[], bool]
"""Whether no batch of the session follows; raises what stopped it."""


class Tail:
    """Iterates over rows: dictionaries by column, each batch whole, in order, once.

    It ends when the query is dropped or replaced or the session has ended, after the last answers that were committed;
    `end_reason` says which. It raises what stopped the query or the session. While nothing comes, `on_wait` hears why.
    """

    def __init__(
        self,
        engine: Engine,
        query_id: str,
        has_ended: HasEnded,
        *,
        from_batch: int | None = None,
        on_wait: OnWait | None = None,
    ) -> None:
        self._engine = engine
        self._query_id = query_id
        self._has_ended = has_ended
        self._on_wait = on_wait or say_on_stderr
        self._silence = Silence()
        self._seen = engine.head.batch if from_batch is None else from_batch - 1
        self.end_reason: str | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            yield from batch.rows

    def batches(self) -> Iterator[AnswerBatch]:
        """Batches that have answers, each with its number: with it stored, `from_batch` goes on behind it."""
        self._silence.heard()
        while self.end_reason is None:
            # Before the answers are looked for: so none that came before the end is left out.
            record, session_end = self._record(), self._end_of_session()
            yield from self._committed()
            self.end_reason = self._end_of_query(record) or session_end()
            if self.end_reason is None:
                self._engine.answers.await_batch(self._seen + 1, LOOK_EVERY_S)
                self._say_why_nothing_comes()

    def _committed(self) -> Iterator[AnswerBatch]:
        while True:
            batch, parts = self._engine.answers.results_after(self._query_id, self._seen)
            if not parts:
                self._seen = max(self._seen, batch)
                return
            output = answer_columns(self._engine.queries.compiled(self._query_id))
            table = answers_table(self._engine.root, output, parts, self._engine.options.timezone)
            self._seen = batch
            yield AnswerBatch(batch, tuple(table.to_pylist()))
            self._silence.heard()

    def _say_why_nothing_comes(self) -> None:
        if self._silence.may_be_due:
            waiting = waiting_for(self._engine, self._query_id)
            if self._silence.is_due(waiting):
                self._on_wait(f"waiting: {waiting.text}")

    def _record(self) -> QueryRecord | None:
        try:
            return self._engine.queries.record(self._query_id)
        except UnknownQuery:
            return None  # dropped so long ago that nobody remembers it

    def _end_of_session(self) -> Callable[[], str | None]:
        """Tells or raises it, when the answers are handed on."""
        ended: Future[bool] = Future()
        try:
            ended.set_result(self._has_ended())
        except Exception as error:  # noqa: BLE001 - whatever stopped it, the answers from before come first
            ended.set_exception(error)
        return lambda: STOPPED if ended.result() else None

    def _end_of_query(self, record: QueryRecord | None) -> str | None:
        if record is None:
            return DROPPED
        if record.exception is not None:
            raise record.exception
        if record.dropped_batch is None:
            return None
        return DROPPED if self._engine.queries.named(record.name) is None else REPLACED
