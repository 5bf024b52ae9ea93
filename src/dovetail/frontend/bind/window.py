"""Reads the arguments of `window(time, size[, slide[, offset]])`, for derived tables and for GROUP BY."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dovetail.core.errors import TypeMismatch, UnsupportedSql
from dovetail.frontend.bind.expressions import ExpressionBinder
from dovetail.frontend.parse.source_text import SourceText
from dovetail.frontend.parse.unsupported import refuse
from dovetail.query.durations import DurationError, parse_duration
from dovetail.query.expression import Column
from dovetail.query.join_query import WINDOW_END, WINDOW_START


@dataclass(frozen=True)
class WindowCall:
    """The arguments of a window() call, with the defaults that Spark gives to those left out."""

    time: Column
    size_us: int
    slide_us: int
    offset_us: int


def window_call(node: exp.Expr) -> exp.Anonymous | None:
    """The node, if it is a call of window()."""
    if not isinstance(node, exp.Anonymous):
        return None
    return node if str(node.this).lower() == "window" else None


def bind_window(call: exp.Anonymous, binder: ExpressionBinder) -> WindowCall:
    source = binder.source
    where = source.where(call)
    args = call.args["expressions"]
    if not 2 <= len(args) <= 4:
        raise UnsupportedSql("window() takes 2 to 4 arguments", where=where, hint="window(ts, '4 seconds')")
    time = binder.bind(args[0])
    if not isinstance(time, Column) or time.name in (WINDOW_START, WINDOW_END):
        hint = "use a timestamp column of the stream itself, computed before create_stream if need be"
        raise refuse("window() over an expression", where, hint)
    if not time.type.is_time:
        raise TypeMismatch(f"window() over a {time.type}", where=where, hint="use a timestamp column")
    size, *rest = (_duration(arg, source) for arg in args[1:])
    slide, offset = (*rest, *(size, 0)[len(rest) :])
    return WindowCall(time, size, slide, offset)


def _duration(node: exp.Expr, source: SourceText) -> int:
    where = source.where(node)
    if isinstance(node, exp.Interval):
        return int(node.this.this)
    if not isinstance(node, exp.Literal) or not node.args.get("is_string"):
        raise UnsupportedSql("window() takes constant durations", where=where, hint="write '4 seconds'")
    try:
        return parse_duration(node.this)
    except DurationError as error:
        raise UnsupportedSql(str(error), where=where, hint=error.hint) from None
