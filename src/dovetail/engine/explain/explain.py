"""EXPLAIN (D5): the shared plan, and one query's paths through it, as text or as JSON of the same records."""

from __future__ import annotations

from typing import Any, Literal, get_args, overload

from dovetail.core.errors import SessionError
from dovetail.engine.engine import Engine
from dovetail.engine.explain.describe.look import Look
from dovetail.engine.explain.describe.plan import describe_plan
from dovetail.engine.explain.describe.query import describe_preview, describe_query
from dovetail.engine.explain.records.plan import PlanExplained, QueryExplained, as_json
from dovetail.engine.explain.text.plan import plan_text
from dovetail.engine.explain.text.query import query_text
from dovetail.engine.explain.text.trace import trace_json, trace_text

ExplainFormat = Literal["text", "json"]


@overload
def explain_plan(engine: Engine, form: Literal["text"] = "text", *, trace: bool = False) -> str: ...
@overload
def explain_plan(engine: Engine, form: Literal["json"], *, trace: bool = False) -> dict[str, Any]: ...
@overload
def explain_plan(engine: Engine, form: ExplainFormat, *, trace: bool = False) -> str | dict[str, Any]: ...


def explain_plan(engine: Engine, form: ExplainFormat = "text", *, trace: bool = False) -> str | dict[str, Any]:
    """`trace`: also how the plan was made, pass by pass."""
    _check_form(form)
    explained = _rendered(describe_plan(Look.at(engine)), form)
    if not trace:
        return explained
    traces = engine.plans.traces
    if isinstance(explained, str):
        return f"{explained}\n{trace_text(traces)}"
    return {**explained, "trace": trace_json(traces)}


@overload
def explain_query(engine: Engine, query_id: str, form: Literal["text"] = "text") -> str: ...
@overload
def explain_query(engine: Engine, query_id: str, form: Literal["json"]) -> dict[str, Any]: ...
@overload
def explain_query(engine: Engine, query_id: str, form: ExplainFormat) -> str | dict[str, Any]: ...


def explain_query(engine: Engine, query_id: str, form: ExplainFormat = "text") -> str | dict[str, Any]:
    _check_form(form)
    return _rendered(describe_query(engine, query_id), form)


@overload
def explain_preview(engine: Engine, sql: str, form: Literal["text"] = "text") -> str: ...
@overload
def explain_preview(engine: Engine, sql: str, form: Literal["json"]) -> dict[str, Any]: ...


def explain_preview(engine: Engine, sql: str, form: ExplainFormat = "text") -> str | dict[str, Any]:
    """Of a query that is not created: what it would share and cost if it were created now."""
    _check_form(form)
    return _rendered(describe_preview(engine, sql), form)


def _check_form(form: str) -> None:
    if form not in get_args(ExplainFormat):
        raise SessionError(f"explain has no format {form!r}", hint="use 'text' or 'json'")


def _rendered(explained: PlanExplained | QueryExplained, form: ExplainFormat) -> str | dict[str, Any]:
    if form == "json":
        record: dict[str, Any] = as_json(explained)
        return record
    return str(plan_text(explained) if isinstance(explained, PlanExplained) else query_text(explained))
