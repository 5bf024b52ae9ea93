"""Records of the engine as what goes over the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dovetail.core.errors import DovetailError
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
from dovetail.query.join_query import JoinQuery, OutputColumn
from dovetail.query.output_names import unique_names
from dovetail.service.access.owners import Owners
from dovetail.service.config.desired import FileChange
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

FAILED = "failed"
_NOT_COMPILED: dict[str, Any] = {"columns": [], "change_column": None, "reads": {}}


def query_state_view(engine: Engine, query_id: str) -> QueryStateView:
    return QueryStateView(**asdict(engine.queries.status(query_id)))


def query_view(engine: Engine, owners: Owners, record: QueryRecord, delivery: Delivery | None) -> QueryView:
    estimate = engine.queries.estimate_of(record.id)
    try:
        fields = _compiled_fields(engine.queries.compiled(record.id))
    except DovetailError:
        # One that ended before its streams changed: it stays in the list.
        fields = _NOT_COMPILED
    return QueryView(
        **asdict(engine.queries.status(record.id, delivery)),
        **fields,
        owner=owners.of(record.name),
        options=_shown(record.options),
        estimate=None if estimate is None else estimate.to_json(),
    )


def failed_view(failed: FileChange, committed_batch: int) -> QueryView:
    """A query of the file that cannot be used."""
    none = dict.fromkeys((each for each in QueryView.model_fields if each not in _NOT_COMPILED), None)
    known: dict[str, Any] = {
        "id": failed.name,
        "name": failed.name,
        "sql": failed.sql,
        "state": FAILED,
        "error": str(failed),
        "in_effect": False,
        "total_rows": 0,
        "committed_batch": committed_batch,
        "options": {},
        "growing_streams": [],
        "growing_groups": [],
    }
    return QueryView(**{**none, **_NOT_COMPILED, **known})


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
        record["sink"] = {"format": options.sink.format, "options": options.sink.shown_options}
    return record


def _compiled_fields(compiled: JoinQuery) -> dict[str, Any]:
    columns = column_views(answer_columns(compiled))
    return {
        "columns": columns[: len(compiled.output)],
        "change_column": columns[-1].name if compiled.is_updating else None,
        "reads": {stream: sorted(columns) for stream, columns in sorted(compiled.read_columns().items())},
    }
