"""`stream [Range r, Slide s]`, as others write windows: spelled out in what Spark's SQL has for them.

    FROM p [Range r, Slide s], a [Range r, Slide s]      each relation is (SELECT *, window(ts, r, s) AS window FROM p),
    WHERE p.k = a.k GROUP BY p.x                         and ... AND p.window = a.window GROUP BY p.x, p.window

Rows meet if they are in one window together, and groups are answered window by window.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dovetail.core.errors import UnsupportedSql
from dovetail.frontend.bind.groups import is_aggregation
from dovetail.frontend.bind.names import find_stream
from dovetail.frontend.parse.parse_sql import RANGE_KEY, RangeWindow
from dovetail.frontend.parse.source_text import OFFSET_KEY, SourceText, offset_of
from dovetail.query.stream import Stream

WINDOW_NAME = "window"
_HINT = "write FROM a [Range 10 seconds, Slide 5 seconds], b [Range 10 seconds, Slide 5 seconds]"


def spell_out_ranges(select: exp.Select, streams: Mapping[str, Stream], source: SourceText) -> None:
    """Change the SELECT in place; one without such windows stays as it is."""
    from_clause = select.args.get("from_")
    holders = [holder for holder in (from_clause, *(select.args.get("joins") or [])) if holder is not None]
    ranged = [holder for holder in holders if RANGE_KEY in holder.this.meta]
    if not ranged:
        return
    windows = {holder.this.meta.get(RANGE_KEY) for holder in holders}
    if len(windows) > 1:
        where = source.where(holders[-1].this)
        raise UnsupportedSql("relations with different windows in brackets, or without", where=where, hint=_HINT)
    for join in holders[1:]:
        if join.args.get("side") or str(join.args.get("kind") or "").upper() not in ("", "INNER", "CROSS"):
            hint = "write window(ts, size, slide) AS w in a derived table on each side, and a.w = b.w in ON"
            raise UnsupportedSql(
                "windows in brackets in an outer, semi or anti join", where=source.where(join), hint=hint
            )
    names = [holder.this.alias_or_name for holder in holders]
    start = offset_of(ranged[0].this)
    for holder in holders:
        holder.set("this", _with_window(holder.this, streams, source))
    for name in names[1:]:
        equality = exp.EQ(this=_window_of(names[0], start), expression=_window_of(name, start))
        select.where(equality, copy=False)
    if is_aggregation(select):
        if select.args.get("group") is None:
            select.set("group", exp.Group(expressions=[]))
        select.args["group"].append("expressions", _window_of(names[0], start))


def _with_window(table: exp.Expr, streams: Mapping[str, Stream], source: SourceText) -> exp.Subquery:
    if not isinstance(table, exp.Table):
        raise UnsupportedSql(
            "a window in brackets after a derived table",
            where=source.where(table),
            hint="write it after the stream's name, or window(ts, ...) in the derived table",
        )
    event_time = find_stream(table, streams, source).event_time
    if event_time is None:
        raise UnsupportedSql(
            f"{table.name} [Range ...]: the stream has no event time",
            where=source.where(table),
            hint="give event_time when the stream is created",
        )
    window: RangeWindow = table.meta.pop(RANGE_KEY)
    durations = (exp.Interval(this=exp.Literal.number(us)) for us in (window.size_us, window.slide_us))
    call = exp.Anonymous(this="window", expressions=[exp.column(event_time, quoted=True), *durations])
    call.meta[OFFSET_KEY] = offset_of(table)
    plain = table.copy()
    plain.set("alias", None)
    inner = exp.Select(expressions=[exp.Star(), exp.alias_(call, WINDOW_NAME)], from_=exp.From(this=plain))
    alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
    spelled = exp.Subquery(this=inner, alias=alias)
    spelled.meta.update(table.meta)
    return spelled


def _window_of(relation: str, offset: int) -> exp.Column:
    column = exp.column(WINDOW_NAME, table=exp.to_identifier(relation, quoted=True))
    column.meta[OFFSET_KEY] = offset
    return column
