"""A handle to one continuous query of a session."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Literal, overload

from pyspark.sql import DataFrame, SparkSession

from dovetail.api.arguments import check_function
from dovetail.core.errors import QueryError
from dovetail.core.html_table import html_table
from dovetail.core.shown_text import ShownText
from dovetail.core.silence import OnWait
from dovetail.engine.admission.query_estimate import QueryEstimate
from dovetail.engine.backfill.record import BackfillStatus
from dovetail.engine.control.query_status import QueryStatus
from dovetail.engine.control.registry import QueryState
from dovetail.engine.delivery.deliveries import Deliveries
from dovetail.engine.delivery.delivery import Delivery
from dovetail.engine.delivery.tail import Tail
from dovetail.engine.engine import Engine
from dovetail.engine.explain.explain import ExplainFormat, explain_query
from dovetail.runtime.result_batch import TakeBatch
from dovetail.runtime.spark.pipeline import SparkPipeline
from dovetail.runtime.spark.read_results import read_results
from dovetail.store.read_answers import current_answers

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LOOK_EVERY_S = 0.1


class Query:
    """A handle to one continuous query, from `session.create_query` or `session.query`.

    `id` is the query's own for ever; `name` may be another's after it was dropped; `sql` is its text.
    """

    def __init__(
        self, spark: SparkSession, engine: Engine, deliveries: Deliveries, pipeline: SparkPipeline, query_id: str
    ) -> None:
        record = engine.queries.record(query_id)
        self._spark = spark
        self._engine = engine
        self._deliveries = deliveries
        self._pipeline = pipeline
        self.id = query_id
        self.name = record.name
        self.sql = record.sql

    @property
    def status(self) -> QueryStatus:
        """What the query is doing: its state, from which batch on it answers, how many answers, errors."""
        return self._engine.queries.status(self.id, self._deliveries.of(self.id))

    @property
    def is_active(self) -> bool:
        """Whether the session runs and its batches answer the query: not when it is dropped or in quarantine."""
        return self._pipeline.is_active and self._engine.queries.record(self.id).is_live

    @property
    def exception(self) -> QueryError | None:
        """What stopped the query while others went on: a row on which it failed, or a limit; None if nothing did."""
        return self._engine.queries.record(self.id).exception

    @property
    def estimate(self) -> QueryEstimate | None:
        """What the query was expected to store, find and cost when it was created; None after a restart."""
        return self._engine.queries.estimate_of(self.id)

    @property
    def backfill(self) -> BackfillStatus | None:
        """How far the answers from before the query are (docs/backfill.md); None if they were not asked for."""
        return self.status.backfill

    def cancel_backfill(self, *, request: str = "") -> None:
        """End the backfill at the next batch edge; what it brought stays among the answers."""
        self.set_options(request=request, backfill=False)

    def drop(self, *, request: str = "") -> None:
        """Stop the query at the next batch edge; its answers so far stay readable."""
        self._engine.queries.drop(self.id, request=request)

    def set_options(self, *, request: str = "", **options: Any) -> None:
        """Change options from the next batch on; those that are not named stay as they are.

            query.set_options(max_results_per_batch=1_000, sink=None)

        None takes a limit or a sink away.
        """
        self._engine.queries.set_options(self.id, options, request=request)

    def await_effect(self, timeout: float | None = None) -> QueryStatus:
        """Wait until the newest change of the query (created, dropped, options) is part of a committed batch.

        When the time is up first, the status says so (`in_effect`).
        """
        self._engine.queries.await_effect(self.id, timeout)
        return self.status

    def await_results(self, rows: int = 1, timeout: float | None = None) -> bool:
        """Wait until the query has so many answers; False when the time is up or the session ends first.

            query.await_results(10, timeout=60) and query.results().show()

        Raises what stopped the session, or the query alone.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while (record := self._engine.queries.record(self.id)).total_rows < rows:
            if record.exception is not None:
                raise record.exception
            is_last_look = time.monotonic() >= deadline or record.state is QueryState.DROPPED
            if is_last_look or self._pipeline.await_termination(LOOK_EVERY_S):
                return self._engine.queries.record(self.id).total_rows >= rows
        return True

    def results(self) -> DataFrame:
        """All committed answers so far, as a batch DataFrame; of running groups those that are true now."""
        query, files = self._engine.queries.compiled(self.id), self._engine.answers.results(self.id)
        return read_results(self._spark, self._engine.root, query, files)

    def tail(self, *, from_batch: int | None = None, on_wait: OnWait | None = None) -> Tail:
        """Answers as they are committed, from the next batch on or from `from_batch`; waits for those to come.

            for row in query.tail():
                print(row["id"], row["amount"])

        Iterates over rows as dictionaries; `tail.batches()` iterates over batches, each with its number. A batch comes
        whole, once, in order, however slowly it is read. Answers that may be taken back have a last column `_change`,
        as for `foreach_batch`. It ends when the query is dropped or replaced or the session has ended
        (`tail.end_reason`), and raises what stopped the query or the session.
        While nothing comes, `on_wait` is called with a line that says why («batch 1 has been running for 12 s»): after
        2 s, when the reason changes, else every 10 s. Unless you give your own, it prints to stderr.
        """
        return Tail(self._engine, self.id, self._pipeline.has_ended, from_batch=from_batch, on_wait=on_wait)

    def foreach_batch(self, function: TakeBatch, *, after: int | None = None) -> Delivery:
        """Have `function(arrow_table, batch)` called with every batch's answers, in order, in a thread of its own.

            query.foreach_batch(lambda table, batch: print(batch, table.num_rows))

        Answers that may be taken back come with a last column `_change`: +1 for a row that is now true, -1 for one
        that was and is not any more.

        It begins with the next batch, or with the first one later than `after`. A batch on which the function raises
        is given to it again. This lasts as long as the session: attach it again after a restart, with `after` the
        last batch that you have.
        """
        check_function(function, after)
        return self._deliveries.attach(self.id, function, after)

    def await_delivered(self, timeout: float | None = None) -> bool:
        """Wait until the query's sink has all answers that are committed now; False when the time is up first."""
        delivery = self._deliveries.of(self.id)
        return delivery is None or delivery.await_delivered(timeout)

    def to_arrow(self) -> pa.Table:
        """As `results`, read from their files without a Spark job; a repeated name gets a number."""
        query, files = self._engine.queries.compiled(self.id), self._engine.answers.results(self.id)
        return current_answers(self._engine.root, query, files, self._engine.options.timezone)

    def to_pandas(self) -> pd.DataFrame:
        """As `to_arrow`, for pandas."""
        return self.to_arrow().to_pandas()

    @overload
    def explain(self, format: Literal["text"] = "text") -> str: ...
    @overload
    def explain(self, format: Literal["json"]) -> dict[str, Any]: ...

    def explain(self, format: ExplainFormat = "text") -> str | dict[str, Any]:  # noqa: A002 - as users call it
        """The query's paths through the shared plan, with whom it shares each, and what it costs (docs/explain.md).

        A string, which a notebook shows as lines; «json» gives the same as a dictionary that `json.dumps` takes.
        """
        found = explain_query(self._engine, self.id, format)
        return ShownText(found) if isinstance(found, str) else found

    def __repr__(self) -> str:
        status = self.status
        covers = f", {status.complete_from_text}" if status.complete_from_text else ""
        return f"Query({self.name!r}, {status.state}, {status.total_rows} rows{covers})"

    def _repr_html_(self) -> str:
        status = self.status
        rows = [
            ("state", status.state),
            ("error", status.error),
            ("answers", status.total_rows),
            ("created in batch", status.created_batch),
            ("covers", status.complete_from_text),
            ("dropped in batch", status.dropped_batch),
            ("kept for ever", ", ".join((*status.growing_streams, *status.growing_groups)) or None),
            ("SQL", self.sql),
        ]
        return html_table(f"Query {self.name}", (), [row for row in rows if row[1] is not None])
