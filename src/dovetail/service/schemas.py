"""What goes over the wire; docs/rest.md says it in words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

OptionValue = bool | int | float | str | None
Options = dict[str, OptionValue]
Name = Annotated[str, Field(max_length=200)]
StatementKind = Literal[
    "create_query", "alter_query", "drop_query", "show_queries", "show_streams", "explain", "create_stream"
]
State = Literal["pending", "running", "quarantined", "dropped", "failed"]


class _Asked(BaseModel):
    """A misspelt field is refused, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NewQuery(_Asked):
    sql: str
    name: Name | None = None
    options: Options = {}
    replace: bool = False


class QueryText(_Asked):
    sql: str
    options: Options = {}


class OptionChanges(_Asked):
    options: Options


class SqlText(_Asked):
    sql: str


class StatementText(_Asked):
    statement: str


class ColumnDeclaration(_Asked):
    name: Name
    type: Name


class NewStream(_Asked):
    name: Name
    format: Name
    columns: list[ColumnDeclaration] = []
    options: Options = {}
    event_time: Name | None = None
    lateness: Name = "0 seconds"
    on_bad_row: Name = "quarantine"
    max_event_time_ahead: Name = "1 day"


class ColumnView(BaseModel):
    name: str
    type: str


class QueryStateView(BaseModel):
    """What of a query changes while it runs."""

    id: str
    name: str
    state: State
    error: str | None
    in_effect: bool
    created_batch: int | None
    complete_from: int | None
    complete_from_text: str | None
    changed_batch: int | None
    dropped_batch: int | None
    failed_batch: int | None
    total_rows: int
    committed_batch: int


class BackfillView(BaseModel):
    state: str
    batches_done: int
    batches_total: int
    rows: int
    error: str | None


class QueryView(QueryStateView):
    sql: str
    owner: str | None
    options: dict[str, Any]
    columns: list[ColumnView]
    change_column: str | None
    reads: dict[str, list[str]]
    growing_streams: list[str]
    growing_groups: list[str]
    estimate: dict[str, Any] | None
    delivered_batch: int | None
    sink_error: str | None
    backfill: BackfillView | None


class QueryList(BaseModel):
    queries: list[QueryView]
    next: str | None


class ValidationView(BaseModel):
    columns: list[ColumnView]
    change_column: str | None
    reads: dict[str, list[str]]
    growing_streams: list[str]
    growing_groups: list[str]
    estimate: dict[str, Any] | None


class ResultPage(BaseModel):
    query: str
    id: str
    columns: list[ColumnView]
    rows: list[dict[str, Any]]
    committed_batch: int
    next: str
    has_more: bool


class StreamView(BaseModel):
    name: str
    columns: list[ColumnView]
    event_time: str | None
    lateness: str
    on_bad_row: str
    max_event_time_ahead: str
    failing: str | None


class BadRowView(BaseModel):
    reason: str
    batch: int
    source: str | None
    position: int
    values: dict[str, Any]
    record: str | None


class BadRowPage(BaseModel):
    """`total` were found since the first batch, `kept` are aside, `overflowed` were more than are kept; `rows` are the
    first of those that are kept.
    """

    stream: str
    total: int
    kept: int
    overflowed: int
    rows: list[BadRowView]


class RetriedView(BaseModel):
    stream: str
    rows: int


class StreamList(BaseModel):
    streams: list[StreamView]


class StatementResult(BaseModel):
    kind: StatementKind
    message: str
    query: QueryView | None = None
    queries: list[QueryView] | None = None
    stream: StreamView | None = None
    streams: list[StreamView] | None = None
    text: str | None = None


class ProgressView(BaseModel):
    committed_batch: int
    progress: dict[str, Any] | None


class StatusView(BaseModel):
    state: Literal["starting", "running", "stopping", "failed"]
    error: str | None
    hint: str | None
    failures: int
    retry_in_s: float | None
    committed_batch: int
    queries: dict[State, int]
    file_failures: list[FileChangeView]
    version: str


class FileChangeView(BaseModel):
    """What the file asks for: `step` is create, replace, change, or fail if it cannot be had."""

    kind: Literal["stream", "query"]
    name: str
    line: int
    step: Literal["create", "replace", "change", "fail"]
    what: str


class AppliedFile(BaseModel):
    changes: list[FileChangeView]


class CallerView(BaseModel):
    name: str
    role: Literal["read", "write", "admin"]
    auth: bool


class HealthView(BaseModel):
    status: Literal["ok", "starting", "stopping", "failed"]
    error: str | None = None


class ErrorBody(BaseModel):
    type: str
    message: str
    where: str | None
    hint: str | None


class ErrorView(BaseModel):
    error: ErrorBody
