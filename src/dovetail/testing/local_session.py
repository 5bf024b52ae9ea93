"""A session without Spark: the same engine and operators, batches pushed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from dovetail.core.clock import Clock, system_clock
from dovetail.core.errors import SessionError
from dovetail.engine.backfill.backfills import Backfills
from dovetail.engine.backfill.record import BackfillStatus
from dovetail.engine.control.execute_statement import StatementRunner
from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.control.statement_result import StatementKind, StatementResult
from dovetail.engine.engine import Engine
from dovetail.engine.options import make_options
from dovetail.engine.planning.fill_intermediates import FillPolicy
from dovetail.frontend.parse.statement import CreateStream
from dovetail.kernels.arrow_types import sql_type_of
from dovetail.optimizer.decisions import Decide
from dovetail.query.durations import parse_duration
from dovetail.query.stream import Stream
from dovetail.runtime.local.run_local import run_local
from dovetail.runtime.probe.snapshot import forget_buckets
from dovetail.stats.unit_costs import DEFAULT_UNIT_COSTS
from dovetail.store.read_answers import current_answers
from dovetail.store.vacuum import VacuumReport, vacuum
from dovetail.testing.faults import Faults
from dovetail.testing.local_history import LocalHistory


class LocalQuery:
    """A handle like the public one."""

    def __init__(self, engine: Engine, query_id: str) -> None:
        self.id = query_id
        self._engine = engine

    @property
    def status(self) -> QueryRecord:
        return self._engine.queries.record(self.id)


class LocalSession:
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
        given = {"partitions": 2, "key_groups": 8, "plan_in_background": False, **options}
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
        self, name: str, schema: pa.Schema, event_time: str | None = None, lateness: str = "0 seconds"
    ) -> None:
        columns = tuple((field.name, sql_type_of(field.type)) for field in schema)
        self.engine.streams.create(Stream(name, columns, event_time, parse_duration(lateness)))

    def create_query(
        self, sql: str, name: str, *, replace: bool = False, request: str = "", **options: Any
    ) -> LocalQuery:
        record = self.engine.queries.create(sql, name, options, may_replace=replace, request=request)
        self._query_ids[name] = record.id
        return LocalQuery(self.engine, record.id)

    def drop_query(self, name: str) -> None:
        self.engine.queries.drop(self._query_ids[name])

    def execute(self, statement: str, *, request: str = "") -> StatementResult:
        result = StatementRunner(self.engine, self.engine.queries.create, _no_streams).execute(statement, request)
        if result.kind is StatementKind.CREATE_QUERY:
            self._query_ids[result.name] = result.id
        return result

    def cancel_backfill(self, name: str) -> None:
        self.engine.queries.set_options(self._query_ids[name], {"backfill": False})

    def backfill(self, name: str) -> BackfillStatus | None:
        return self.engine.queries.status(self._query_ids[name]).backfill

    def push(self, tables: Mapping[str, pa.Table], splits: int = 1) -> None:
        """One micro-batch."""
        self._last = dict(tables), splits
        self._history.note(self.engine.head.batch + 1, tables)
        self._run(self.engine.head.batch + 1)

    def redeliver(self) -> None:
        """The last batch again under its number, as Spark does after a crash before its own commit."""
        self._run(self.engine.head.batch)

    def results(self, name: str) -> pa.Table:
        """Of the newest query of this name, or of the query with this id."""
        query_id = self._query_ids.get(name, name)
        query, files = self.engine.queries.compiled(query_id), self.engine.answers.results(query_id)
        return current_answers(self.engine.root, query, files, self.engine.options.timezone)

    @property
    def progress(self) -> dict[str, Any] | None:
        return self.engine.batches.progress

    def vacuum(self, *, dry_run: bool = False) -> VacuumReport:
        return vacuum(self.engine.root, dry_run=dry_run, retention_s=0.0)

    def close(self) -> None:
        self.backfills.close()
        self.engine.close()
        # This process goes on to other checkpoints: each mapped bucket holds an open file.
        forget_buckets(self.engine.root, set())

    def _run(self, batch: int) -> None:
        if self._last is None:
            raise ValueError("no batch was pushed yet")
        tables, splits = self._last
        self.engine.check_ready()
        self.engine.batches.run(
            batch,
            lambda task: run_local(
                task,
                tables,
                splits=splits,
                rows_per_chunk=self._rows_per_chunk,
                run_task=self._faults.run_task,
                after_source=lambda: self._faults.on_step("after_source"),
            ),
        )


def _no_streams(statement: CreateStream, _request: str) -> NoReturn:
    raise SessionError(f"stream {statement.name!r} has no source here", hint="call create_stream with its schema")
