"""The file as the desired state: what differs from it in meaning, as a plan of changes.

Streams of the file are declared, or changed as far as a checkpoint takes it. Queries are compared by what they mean: a
text that compiles to the same query is the same. What the file does not name stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from dovetail.core.errors import DovetailError
from dovetail.engine.control.check_sink import check_sink_place, folders_of
from dovetail.engine.control.look import Known
from dovetail.engine.control.query_options import QueryOptions, query_options
from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.control.stream_change import stream_change
from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.stream import Stream
from dovetail.service.config.config import QueryConfig, ServiceConfig


class Step(Enum):
    """What is to do for one entry of the file."""

    CREATE = "create"
    REPLACE = "replace"
    CHANGE = "change"
    FAIL = "fail"


@dataclass(frozen=True)
class FileChange:
    """`line` is where the file names it; `what` says what differs, or why it cannot be."""

    kind: str
    name: str
    line: int
    step: Step
    what: str = ""
    sql: str = ""

    def __str__(self) -> str:
        words = {Step.FAIL: "cannot be used"}.get(self.step, self.step.value)
        return f"line {self.line}, {self.kind} {self.name}: {words}" + (f": {self.what}" if self.what else "")

    def to_json(self) -> dict[str, Any]:
        record = asdict(self) | {"step": self.step.value}
        del record["sql"]
        return record


def plan_changes(config: ServiceConfig, known: Known, timezone: str) -> tuple[FileChange, ...]:
    """In the order in which they are made: streams first, then queries, each as in the file."""
    found = [_of_stream(config, known, name) for name in config.stream_by_name]
    # Queries are compiled with the streams as they will be.
    failed = {change.name for change in found if change is not None and change.step is Step.FAIL}
    wanted = {name: spec for name, spec in config.stream_by_name.items() if name not in failed}
    specs = {**known.declared, **wanted}
    streams = {**known.registered, **{name: spec.stream for name, spec in specs.items()}}
    for query in config.queries:
        before = known.registry.named(query.name)
        refused = _refused_sink(config, query, before, folders_of(specs.values()))
        found.append(refused or _of_query(query, before, streams, timezone))
    return tuple(change for change in found if change is not None)


def desired_options(query: QueryConfig) -> QueryOptions:
    """As the file has them: what it does not name is as usual, whatever the query has now."""
    return query_options(query.options)


def _of_stream(config: ServiceConfig, known: Known, name: str) -> FileChange | None:
    spec, line = config.stream_by_name[name], config.line_by_stream.get(name, 0)
    before = known.declared.get(name)
    if before is None:
        return FileChange("stream", name, line, Step.CREATE)
    if before == spec:
        return None
    change = stream_change(before, spec)
    if change.refused:
        what = f"{'; '.join(change.refused)}. It stays as it is; declare the new one under another name"
        return FileChange("stream", name, line, Step.FAIL, what)
    return FileChange("stream", name, line, Step.CHANGE, str(change))


def _refused_sink(
    config: ServiceConfig, query: QueryConfig, known: QueryRecord | None, read: Mapping[str, Sequence[str]]
) -> FileChange | None:
    """A sink that writes where it must not; one that the query has already stays."""
    sink = desired_options(query).sink
    if sink is None or (known is not None and known.options.sink == sink):
        return None
    try:
        check_sink_place(query.name, sink, config.checkpoint_dir, read)
    except DovetailError as error:
        return FileChange("query", query.name, query.line, Step.FAIL, error_text(error), query.sql)
    return None


def _of_query(
    query: QueryConfig, known: QueryRecord | None, streams: Mapping[str, Stream], timezone: str
) -> FileChange | None:
    def change(step: Step, what: str = "") -> FileChange:
        return FileChange("query", query.name, query.line, step, what, query.sql)

    try:
        compiled = compile_sql(query.sql, streams, timezone=timezone)
    except DovetailError as error:
        return change(Step.FAIL, error_text(error))
    if known is None:
        return change(Step.CREATE)
    try:
        is_same = compile_sql(known.sql, streams, timezone=timezone).means_the_same(compiled)
    except DovetailError:
        is_same = False
    if not is_same:
        return change(Step.REPLACE, f"it means something else than the query of this name, {known.id}")
    wanted = desired_options(query)
    differing = [name for name, value in vars(wanted).items() if getattr(known.options, name) != value]
    return change(Step.CHANGE, f"options: {', '.join(differing)}") if differing else None


def error_text(error: DovetailError) -> str:
    """In one line."""
    parts = (error.what, f"at {error.where}" if error.where else "", f"instead: {error.hint}" if error.hint else "")
    return "; ".join(part for part in parts if part)
