"""Records of the engine as what goes over the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dovetail.engine.control.query_options import QueryOptions
from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.delivery.delivery import Delivery
from dovetail.engine.engine import Engine
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.needs import growing_streams
from dovetail.query.answer_columns import answer_columns
from dovetail.query.growing_groups import growing_groups
from dovetail.query.hide_secrets import hide_secrets
from dovetail.query.join_query import JoinQuery, OutputColumn
from dovetail.query.output_names import unique_names
from dovetail.query.stream import Stream
from dovetail.service.access.owners import Owners
from dovetail.service.schemas import (
    BackfillView,
    ColumnView,
    QueryStateView,
    QueryView,
    State,
    StreamView,
    ValidationView,
)

_US_PER_S = 1_000_000


def query_state_view(engine: Engine, record: QueryRecord) -> QueryStateView:
    return QueryStateView(**_state_fields(engine, record))


def query_view(engine: Engine, owners: Owners, record: QueryRecord, delivery: Delivery | None) -> QueryView:
    compiled, estimate = engine.queries.compiled(record.id), engine.queries.estimate_of(record.id)
    backfill = engine.queries.backfill_status(record.id)
    return QueryView(
        **_state_fields(engine, record),
        **_compiled_fields(record.name, compiled),
        sql=record.sql,
        owner=owners.of(record.name),
        options=_shown(record.options),
        estimate=None if estimate is None else estimate.to_json(),
        delivered_batch=None if delivery is None else delivery.delivered_batch,
        sink_error=None if delivery is None else delivery.error,
        backfill=None if backfill is None else BackfillView(**asdict(backfill)),
    )


def validation_view(engine: Engine, sql: str) -> ValidationView:
    estimate = engine.queries.estimate(sql)
    return ValidationView(**_compiled_fields("query", engine.queries.compile(sql)), estimate=estimate.to_json())


def stream_view(stream: Stream) -> StreamView:
    return StreamView(
        name=stream.name,
        columns=[ColumnView(name=name, type=str(sql_type)) for name, sql_type in stream.columns],
        event_time=stream.event_time,
        lateness=f"{stream.lateness_us / _US_PER_S:g} seconds",
    )


def column_views(columns: Sequence[OutputColumn]) -> list[ColumnView]:
    names = unique_names([column.name for column in columns])
    return [ColumnView(name=unique, type=str(column.type)) for unique, column in zip(names, columns, strict=True)]


def count_by_state(engine: Engine) -> Mapping[State, int]:
    """Of queries that are not forgotten, dropped ones included."""
    counted: Counter[Any] = Counter(record.state.value for record in engine.queries.records())
    return dict(counted)


def _shown(options: QueryOptions) -> dict[str, Any]:
    """Whoever may read may not use the sink's passwords."""
    record = options.to_json()
    if options.sink is not None:
        record["sink"] = {"format": options.sink.format, "options": hide_secrets(options.sink.options)}
    return record


def _state_fields(engine: Engine, record: QueryRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name,
        "state": record.state.value,
        "error": record.error,
        "in_effect": engine.queries.is_in_effect(record.id),
        "created_batch": record.created_batch,
        "complete_from": record.complete_from,
        "changed_batch": record.changed_batch,
        "dropped_batch": record.dropped_batch,
        "failed_batch": record.failed_batch,
        "total_rows": record.total_rows,
        "committed_batch": engine.head.batch,
    }


def _compiled_fields(name: str, compiled: JoinQuery) -> dict[str, Any]:
    columns = column_views(answer_columns(compiled))
    return {
        "columns": columns[: len(compiled.output)],
        "change_column": columns[-1].name if compiled.is_updating else None,
        "reads": {stream: sorted(columns) for stream, columns in sorted(compiled.read_columns().items())},
        "growing_streams": growing_streams(LiveQuery(name, name, compiled)),
        "growing_groups": list(growing_groups(compiled)),
    }
