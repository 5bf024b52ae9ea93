"""What the plan costs, and what its last change brought, in words."""

from __future__ import annotations

from dovetail.core.text_tree import TextTree
from dovetail.engine.explain.records.costs import ChangeExplained, CostExplained, QueryCostExplained
from dovetail.engine.explain.text.words import UNKNOWN, cut, lines, milliseconds, number, share


def cost_tree(cost: CostExplained) -> TextTree:
    queries = [TextTree(f"{each.query} {_part(each)}") for each in cost.queries]
    return TextTree(
        f"joining takes {milliseconds(cost.total_ms)} a batch ({cost.basis.value}){_saving(cost)}",
        cut(queries, "queries"),
    )


def _saving(cost: CostExplained) -> str:
    if cost.alone_ms is None or cost.saving_share is None:
        return ""
    if len(cost.queries) < 2:
        return ""
    alone = f", {milliseconds(cost.alone_ms)} if each query ran alone"
    if not cost.saving_share:
        return f"{alone}: sharing saves nothing"
    saved = f"saves {share(cost.saving_share)}" if cost.saving_share > 0 else f"costs {share(-cost.saving_share)} more"
    return f"{alone}: sharing {saved}"


def query_cost_line(cost: QueryCostExplained) -> str:
    return f"cost: it {_part(cost)}"


def _part(cost: QueryCostExplained) -> str:
    if cost.share_of_plan is None:
        return "joins nothing"
    alone = "" if cost.alone_ms is None else f"; alone it would take {milliseconds(cost.alone_ms)}"
    part = f"takes {milliseconds(cost.share_ms)} a batch ({cost.basis.value}), {share(cost.share_of_plan)} of the plan"
    return f"{part}{alone}"


def change_tree(change: ChangeExplained | None) -> TextTree:
    if change is None:
        return TextTree("the plan has not changed since this process began")
    took = (
        f"batches took {milliseconds(change.observed_before_ms)} before, {milliseconds(change.observed_after_ms)} after"
    )
    rows = f"with {number(change.input_rows_before)} and {number(change.input_rows_after)} rows"
    return TextTree(
        f"the plan changed last with batch {change.batch} (epoch {change.epoch})",
        (
            lines("because", change.reasons or (UNKNOWN,), "reasons"),
            TextTree(f"{took}{_gain(change.observed_before_ms, change.observed_after_ms)}, {rows}"),
            *_expected(change),
        ),
    )


def _expected(change: ChangeExplained) -> tuple[TextTree, ...]:
    """Only the joint optimizer expects anything of a change."""
    before, after = change.expected_before_ms, change.expected_after_ms
    if before is None or after is None:
        return ()
    said = f"expected: {milliseconds(before)} of work before, {milliseconds(after)} after"
    return (TextTree(f"{said}{_gain(before, after)}"),)


def _gain(before: float | None, after: float | None) -> str:
    if before is None or after is None or not before:
        return ""
    change = after / before - 1
    return f" ({share(abs(change))} {'less' if change < 0 else 'more'})"
