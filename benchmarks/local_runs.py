"""Batches through the engine and the runtime's operators in this process: what plans cost, without Spark's share."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.options import BenchError
from dovetail.engine.engine import Engine
from dovetail.engine.options import make_options
from dovetail.engine.progress.figures import BatchFigures
from dovetail.kernels.arrow_types import sql_type_of
from dovetail.optimizer.decisions import Decide
from dovetail.query.answer_columns import answer_columns
from dovetail.query.stream import Stream
from dovetail.runtime.local.run_local import run_local
from dovetail.store.read_answers import answer_schema, read_answers

FIRST_SHIPPED = 2
"""A row that arrives meets its first store as hop 1; what hop 2 and later ones probe with came from another hop."""


@dataclass
class LocalRun:
    """`rows_shipped` went from one hop to the next; `rows_stored` are in all stores at the end.

    `seconds` are those of batches without `planning_seconds`: a session plans in the background.
    """

    seconds: float = 0.0
    planning_seconds: float = 0.0
    rows_shipped: int = 0
    rows_probed: int = 0
    rows_stored: int = 0
    state_bytes: int = 0
    answers: pa.Table | None = None


def run_locally(
    folder: Path,
    schema_by_stream: Mapping[str, pa.Schema],
    batches: Iterable[Mapping[str, pa.Table]],
    sql: str,
    options: Mapping[str, Any],
    decide: Decide | None = None,
) -> LocalRun:
    """One query over streams without event time; the clock runs while batches do, not while they are read."""
    engine = Engine(folder, make_options(**options), decide=decide)
    try:
        for stream, schema in schema_by_stream.items():
            engine.streams.create(Stream(stream, tuple((column.name, sql_type_of(column.type)) for column in schema)))
        query = engine.queries.create(sql, "q")
        run = LocalRun()
        for tables in batches:
            began = time.perf_counter()
            engine.batches.run(engine.head.batch + 1, lambda task, tables=tables: run_local(task, tables))  # type: ignore[misc]
            figures = engine.head.figures
            assert figures is not None
            run.planning_seconds += figures.durations.plan_s
            run.seconds += time.perf_counter() - began - figures.durations.plan_s
            _add(run, figures)
        record = engine.queries.record(query.id)
        if record.error:
            raise BenchError(f"the query failed: {record.error}")
        run.answers = answers_of(engine, query.id)
    finally:
        engine.close()
    return run


def answers_of(engine: Engine, query_id: str) -> pa.Table:
    """All committed answers of a query."""
    schema = answer_schema(answer_columns(engine.queries.compiled(query_id)), engine.options.timezone)
    return read_answers(engine.root, schema, engine.answers.results(query_id))


def _add(run: LocalRun, figures: BatchFigures) -> None:
    run.rows_shipped += sum(step.probe_rows for step in figures.steps if step.hop >= FIRST_SHIPPED)
    run.rows_probed += sum(step.probe_rows for step in figures.steps)
    run.rows_stored = sum(store.kept.rows for store in figures.stores)
    run.state_bytes = sum(store.kept.size_bytes for store in figures.stores)
