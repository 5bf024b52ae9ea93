"""A session without Spark: the same engine and operators, batches pushed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from dovetail.core.clock import Clock, system_clock
from dovetail.core.errors import SessionError, task_failure
from dovetail.engine.backfill.backfills import Backfills
from dovetail.engine.backfill.record import BackfillStatus
from dovetail.engine.control.execute_statement import StatementRunner
from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.control.statement_result import StatementKind, StatementResult
from dovetail.engine.engine import Engine
from dovetail.engine.explain.explain import explain_plan
from dovetail.engine.options import make_options
from dovetail.engine.planning.fill_intermediates import FillPolicy
from dovetail.frontend.parse.statement import CreateStream
from dovetail.kernels.arrow_types import sql_type_of
from dovetail.optimizer.decisions import Decide
from dovetail.query.row_rules import ONE_DAY, QUARANTINE, lateness_us, row_rules
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.local.run_local import run_local
from dovetail.runtime.message import Message
from dovetail.runtime.probe.mapped_bucket import forget_buckets
from dovetail.stats.unit_costs import DEFAULT_UNIT_COSTS
from dovetail.store.bad_rows import BadRow
from dovetail.store.read_answers import current_answers
from dovetail.store.vacuum import VacuumReport, vacuum
from dovetail.testing.faults import Faults
from dovetail.testing.local_history import LocalHistory


class LocalQuery:
    """What a query is doing; answers come from `LocalSession.results`."""

    def __init__(self, engine: Engine, query_id: str) -> None:
        self.id = query_id
        self._engine = engine

    @property
    def status(self) -> QueryRecord:
        return self._engine.queries.record(self.id)


class LocalSession:
    """A session for tests: the same engine and operators in this process, without Spark and Java, one batch a `push`.

    >>> import tempfile
    >>> orders = pa.table({"id": [1, 2], "item": ["tea", "jam"]})
    >>> payments = pa.table({"order_id": [2], "amount": [7]})
    >>> with tempfile.TemporaryDirectory() as folder, LocalSession(folder) as session:
    ...     session.create_stream("orders", orders.schema)
    ...     session.create_stream("payments", payments.schema)
    ...     query = session.create_query(
    ...         "SELECT o.item, p.amount FROM orders o JOIN payments p ON o.id = p.order_id", "paid"
    ...     )
    ...     session.push({"orders": orders, "payments": payments})
    ...     session.results("paid").to_pylist()
    [{'item': 'jam', 'amount': 7}]

    Options are those of a session (docs/options.md) and its inner settings. All keywords that are named here are for
    tests of Dovetail itself.
    """

    def __init__(
        self,
        checkpoint_dir: str | Path,
        *,
        faults: Faults | None = None,
        rows_per_chunk: int | None = None,
        decide: Decide | None = None,
        fill_policy: FillPolicy | None = None,
        clock: Clock = system_clock,
        history: LocalHistory | None = None,
        history_faults: Faults | None = None,
        **options: Any,
    ) -> None:
        """`history` outlives the session, as a source does: give the same one to the next on this checkpoint."""
        self._faults = faults or Faults()
        self._history = history or LocalHistory()
        self._rows_per_chunk = rows_per_chunk
        usual = {"partitions": 2, "key_groups": 8, "plan_in_background": False, "durability": "process"}
        given = {**usual, "small_batch_rows": 0, **options}
        self.engine = Engine(
            Path(checkpoint_dir),
            make_options(**given),
            clock=clock,
            on_step=self._faults.on_step,
            decide=decide,
            # The same plans on every machine.
            units=DEFAULT_UNIT_COSTS,
            fill_policy=fill_policy,
        )
        self.backfills = Backfills(self.engine, self._history, on_step=(history_faults or Faults()).on_step)
        self._last: tuple[dict[str, pa.Table], int] | None = None
        self._query_ids: dict[str, str] = {record.name: record.id for record in self.engine.queries.records()}

    def create_stream(
        self,
        name: str,
        schema: pa.Schema,
        event_time: str | None = None,
        lateness: str = "0 seconds",
        on_bad_row: str = QUARANTINE,
        max_event_time_ahead: str = ONE_DAY,
    ) -> None:
        """Add a stream by its Arrow schema; as `Session.create_stream`."""
        columns = tuple((field.name, sql_type_of(field.type)) for field in schema)
        rules = row_rules(name, on_bad_row, max_event_time_ahead)
        self.engine.streams.create(Stream(name, columns, event_time, lateness_us(name, lateness), rules))

    def bad_rows(self, stream: str) -> list[BadRow]:
        """As `Session.bad_rows`."""
        return self.engine.streams.bad_rows(stream)

    def retry_bad_rows(self, stream: str, *, request: str = "") -> int:
        """As `Session.retry_bad_rows`: with the next push."""
        return self.engine.streams.retry_bad_rows(stream, request=request)

    def create_query(
        self, sql: str, name: str, *, replace: bool = False, request: str = "", **options: Any
    ) -> LocalQuery:
        """As `Session.create_query`: in effect with the next push."""
        record = self.engine.queries.create(sql, name, options, may_replace=replace, request=request)
        self._query_ids[name] = record.id
        return LocalQuery(self.engine, record.id)

    def drop_query(self, name: str) -> None:
        """As `Query.drop`: in effect with the next push."""
        self.engine.queries.drop(self._query_ids[name])

    def execute(self, statement: str, *, request: str = "") -> StatementResult:
        """As `Session.execute`; streams have no source here, so they cannot be declared."""
        result = StatementRunner(self.engine, self.engine.queries.create, _no_streams).execute(statement, request)
        if result.kind is StatementKind.CREATE_QUERY:
            self._query_ids[result.name] = result.id
        return result

    def cancel_backfill(self, name: str) -> None:
        """As `Query.cancel_backfill`."""
        self.engine.queries.set_options(self._query_ids[name], {"backfill": False})

    def backfill(self, name: str) -> BackfillStatus | None:
        """As `Query.backfill`."""
        return self.engine.queries.status(self._query_ids[name]).backfill

    def push(self, tables: Mapping[str, pa.Table], splits: int = 1) -> None:
        """Run and commit one batch over these rows, by stream; `splits` is the number of source tasks."""
        self._last = dict(tables), splits
        self._history.note(self.engine.head.batch + 1, tables)
        self._run(self.engine.head.batch + 1)

    def redeliver(self) -> None:
        """The last batch again under its number, as Spark does after a crash before its own commit."""
        self._run(self.engine.head.batch)

    def results(self, name: str) -> pa.Table:
        """All committed answers of the newest query of this name, or of the query with this id.

        Of running groups those that are true now.
        """
        query_id = self._query_ids.get(name, name)
        query, files = self.engine.queries.compiled(query_id), self.engine.answers.results(query_id)
        return current_answers(self.engine.root, query, files, self.engine.options.timezone)

    @property
    def progress(self) -> dict[str, Any] | None:
        """As `Session.progress`."""
        return self.engine.batches.progress

    def explain(self, *, trace: bool = False) -> str:
        """As `Session.explain`."""
        return explain_plan(self.engine, trace=trace)

    def vacuum(self, *, dry_run: bool = False) -> VacuumReport:
        """As `Session.vacuum`, of files of any age."""
        return vacuum(self.engine.root, dry_run=dry_run, retention_s=0.0)

    def __enter__(self) -> LocalSession:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the checkpoint: another session may then open it."""
        self.backfills.close()
        self.engine.close()
        # This process goes on to other checkpoints: each mapped bucket holds an open file.
        forget_buckets(self.engine.root, set())

    def _run(self, batch: int) -> None:
        if self._last is None:
            raise ValueError("no batch was pushed yet")
        tables, splits = self._last
        self.engine.check_ready()

        def run(task: BatchTask) -> list[Message]:
            try:
                return run_local(
                    task.in_one_partition() if task.is_small else task,
                    tables,
                    splits=splits,
                    rows_per_chunk=self._rows_per_chunk,
                    run_task=self._faults.run_task,
                    after_source=lambda: self._faults.on_step("after_source"),
                )
            except Exception as error:
                raise task_failure(error) from error

        self.engine.batches.run(batch, run)


def _no_streams(statement: CreateStream, _request: str) -> NoReturn:
    raise SessionError(f"stream {statement.name!r} has no source here", hint="call create_stream with its schema")
