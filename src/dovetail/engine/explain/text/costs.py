"""What the plan costs, and what its last change brought, in words."""

from __future__ import annotations

from dovetail.core.text_tree import TextTree
from dovetail.engine.explain.records.costs import ChangeExplained, CostExplained, QueryCostExplained, WorkExplained
from dovetail.engine.explain.text.words import UNKNOWN, cut, lines, milliseconds, number, share
from dovetail.stats.estimate import Origin


def cost_tree(cost: CostExplained) -> TextTree:
    queries = cut([TextTree(f"{each.query} {_part(each)}") for each in cost.queries], "queries")
    if len(cost.queries) < 2:
        return TextTree(
            f"joining is expected to take {milliseconds(cost.total_ms)} a batch ({cost.basis.value})", queries
        )
    return TextTree(_saving(cost), (*_reading(cost.measured), TextTree(_joining(cost), queries)))


def _saving(cost: CostExplained) -> str:
    """As measured, or else as the cost model has it."""
    work = cost.measured
    if work is None:
        if cost.saving_share is None or cost.basis is Origin.ASSUMED:
            return "sharing saves: not known before a batch has run by this plan"
        return f"sharing {_saved(cost.saving_share)} of joining (expected)"
    total, alone = milliseconds(work.total_ms), milliseconds(work.alone_ms)
    return f"sharing {_saved(work.saving_share)} of the work: a batch takes {total}, {alone} if each query ran alone"


def _saved(saving_share: float) -> str:
    return f"saves {share(saving_share)}" if saving_share >= 0 else f"adds {share(-saving_share)}"


def _reading(work: WorkExplained | None) -> tuple[TextTree, ...]:
    if work is None:
        return ()
    times = f"{milliseconds(work.reading_ms)}, alone {milliseconds(work.reading_alone_ms)}"
    return (TextTree(f"reading: {work.rows_read:,} rows once instead of {work.rows_read_alone:,}; {times}"),)


def _joining(cost: CostExplained) -> str:
    work, alone = cost.measured, milliseconds(cost.alone_ms)
    expected = f"{milliseconds(cost.total_ms)} a batch, alone {alone} in all ({cost.basis.value})"
    if work is None:
        return f"joining: expected {expected}"
    taken, taken_alone = milliseconds(work.joining_ms), milliseconds(work.joining_alone_ms)
    return f"joining: {taken}, alone {taken_alone}, as the cost model compares them: {expected}"


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
