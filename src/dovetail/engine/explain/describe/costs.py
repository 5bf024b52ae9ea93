"""What the plan costs whom, and what its last change brought, as records."""

from __future__ import annotations

from dovetail.engine.explain.describe.look import Look
from dovetail.engine.explain.records.costs import ChangeExplained, CostExplained, QueryCostExplained, WorkExplained
from dovetail.engine.planning.plan_history import PlanChange
from dovetail.plan.live_query import LiveQuery
from dovetail.stats.estimate import Origin


def describe_cost(look: Look) -> CostExplained:
    book = look.priced.book
    return CostExplained(
        total_ms=book.total_s * 1e3,
        alone_ms=_ms(book.alone_s),
        saving_ms=_ms(book.saving_s),
        saving_share=_ratio(book.saving_s, book.alone_s),
        basis=look.priced.whole_basis,
        measured=_work(look),
        queries=tuple(describe_query_cost(look, live) for live in look.planned.asked),
    )


def _work(look: Look) -> WorkExplained | None:
    book, last, times = look.priced.book, look.recent.last, look.recent.usual_times()
    if last is None or times is None or not last.input_rows or last.epoch != look.plan.epoch:
        return None
    if book.alone_s is None or (book.parts and look.priced.whole_basis is Origin.ASSUMED):
        return None
    wanted = [{relation.stream for relation in live.query.relations} for live in look.planned.asked]
    rows = sum(last.rows_of(stream) for stream in set().union(*wanted))
    rows_alone = sum(last.rows_of(stream) for streams in wanted for stream in streams)
    source_s, hop_s = times
    row_s = source_s / last.input_rows
    hop_alone_s = hop_s * (book.alone_s / book.total_s if book.total_s else 1.0)
    total_s, alone_s = rows * row_s + hop_s, rows_alone * row_s + hop_alone_s
    return WorkExplained(
        rows_read=rows,
        rows_read_alone=rows_alone,
        reading_ms=rows * row_s * 1e3,
        reading_alone_ms=rows_alone * row_s * 1e3,
        joining_ms=hop_s * 1e3,
        joining_alone_ms=hop_alone_s * 1e3,
        total_ms=total_s * 1e3,
        alone_ms=alone_s * 1e3,
        saving_share=1 - total_s / alone_s if alone_s else 0.0,
    )


def describe_query_cost(look: Look, live: LiveQuery) -> QueryCostExplained:
    """What joins rows for groups costs each of their users as much; a query over one stream joins nothing."""
    joining = look.joining_by_user.get(live.id, live.id)
    cost = look.priced.book.cost_by_query.get(joining)
    if cost is None:
        return QueryCostExplained(live.name, 0.0, 0.0, None, None, look.priced.whole_basis)
    share_s = cost.share_s / max(list(look.joining_by_user.values()).count(joining), 1)
    return QueryCostExplained(
        live.name,
        _ms(cost.alone_s),
        share_s * 1e3,
        _ratio(share_s, look.priced.book.total_s),
        _ratio(share_s, cost.alone_s),
        look.priced.basis_by_query[joining],
    )


def describe_change(change: PlanChange, reasons: tuple[str, ...]) -> ChangeExplained:
    return ChangeExplained(
        batch=change.batch,
        epoch=change.epoch,
        reasons=reasons,
        expected_before_ms=_ms(change.expected_before_s),
        expected_after_ms=_ms(change.expected_after_s),
        observed_before_ms=change.observed_before_ms,
        observed_after_ms=change.observed_after_ms,
        input_rows_before=change.rows_before,
        input_rows_after=change.rows_after,
    )


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
