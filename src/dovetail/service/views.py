"""Records of the engine as what goes over the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dovetail.core.stream_description import StreamDescription
from dovetail.engine.bad_rows import BadRowTotals
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
from dovetail.service.access.owners import Owners
from dovetail.service.schemas import (
    BadRowPage,
    BadRowView,
    ColumnView,
    QueryStateView,
    QueryView,
    State,
    StreamView,
    ValidationView,
)


def query_state_view(engine: Engine, query_id: str) -> QueryStateView:
    return QueryStateView(**asdict(engine.queries.status(query_id)))


def query_view(engine: Engine, owners: Owners, record: QueryRecord, delivery: Delivery | None) -> QueryView:
    compiled, estimate = engine.queries.compiled(record.id), engine.queries.estimate_of(record.id)
    return QueryView(
        **asdict(engine.queries.status(record.id, delivery)),
        **_compiled_fields(compiled),
        owner=owners.of(record.name),
        options=_shown(record.options),
        estimate=None if estimate is None else estimate.to_json(),
    )


def validation_view(engine: Engine, sql: str) -> ValidationView:
    compiled, estimate = engine.queries.compile(sql), engine.queries.estimate(sql)
    return ValidationView(
        **_compiled_fields(compiled),
        growing_streams=growing_streams(LiveQuery("", "", compiled)),
        growing_groups=list(growing_groups(compiled)),
        estimate=estimate.to_json(),
    )


def stream_view(stream: StreamDescription) -> StreamView:
    return StreamView.model_validate(asdict(stream))


def bad_row_page(engine: Engine, stream: str, limit: int) -> BadRowPage:
    totals = engine.head.state.bad_row_totals.get(stream, BadRowTotals())
    rows = engine.streams.bad_rows(stream)
    return BadRowPage(
        stream=stream,
        total=totals.rows,
        kept=len(rows),
        overflowed=totals.overflowed_rows,
        rows=[BadRowView(**{**vars(row), "values": _texts(row.values)}) for row in rows[:limit]],
    )


def _texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON has stays as it is."""
    return {
        name: value if value is None or isinstance(value, bool | int | str) else str(value)
        for name, value in values.items()
    }


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


def _compiled_fields(compiled: JoinQuery) -> dict[str, Any]:
    columns = column_views(answer_columns(compiled))
    return {
        "columns": columns[: len(compiled.output)],
        "change_column": columns[-1].name if compiled.is_updating else None,
        "reads": {stream: sorted(columns) for stream, columns in sorted(compiled.read_columns().items())},
    }
