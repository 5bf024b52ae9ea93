"""How a step finds rows beside their keys: by which order of the index, and by what ranges (B6).

    keys and a band            a.k = b.k AND ABS(a.x - b.x) <= 5     [k; x], searched by x
    keys and one inequality    a.k = b.k AND a.x < b.x               [k], the inequality is asked of what is found
    no keys                    a.x < b.x AND a.y > b.y               [; x], searched by x, y is looked at while walking
    no keys, only time         b.ts BETWEEN a.ts AND a.ts + 5 s      [; event time]
    nothing of all that        a.x <> b.x OR a.y = b.y               [], everything meets, then the condition decides

Beside keys an order must be worth an index of its own: one inequality leaves half of the few rows that equal keys
leave, and costs the sharing of the step with all queries that have the same keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.optimizer.passes.derive_ranges import derive_ranges, is_safe_for_all_rows
from dovetail.plan.probe_tree import StoredRange
from dovetail.plan.store_plan import EVENT_TIME
from dovetail.query.expression import Expression, shown_timestamp


@dataclass(frozen=True)
class StepSearch:
    """The order of the step's index, the ranges of a leg, and the conditions that are asked of what is found."""

    order: Expression | None
    ranges: tuple[StoredRange, ...]
    residuals: tuple[Expression, ...]


def choose_search(residuals: Sequence[Expression], *, has_keys: bool, is_timed: bool) -> StepSearch:
    """`residuals` speak of `row` and members; `is_timed`: the row's event time has bounds against some member's."""
    derived = derive_ranges(residuals)
    candidates = [each for each in derived.ranges if _is_worth_an_order(each, has_keys=has_keys, is_timed=is_timed)]
    if not candidates:
        order = EVENT_TIME if is_timed and not has_keys else None
        return StepSearch(order, (), tuple(residuals))
    best = min(candidates, key=lambda each: (not _is_two_sided(each), not each.is_exact, str(each.stored)))
    # Other ranges are looked at in all rows of a bucket, also in those that nobody wants.
    unsafe = {each.stored for each in derived.ranges if each != best and not is_safe_for_all_rows(each.stored)}
    if unsafe:
        derived = derive_ranges(residuals, without=unsafe)
    return StepSearch(best.stored, derived.ranges, derived.residuals)


def _is_worth_an_order(found: StoredRange, *, has_keys: bool, is_timed: bool) -> bool:
    # What one difference of times leaves open, their bounds may close: event time is searched on both sides.
    is_half_of_bounds = is_timed and shown_timestamp(found.stored) is not None
    return _is_two_sided(found) or not (has_keys or is_half_of_bounds)


def _is_two_sided(found: StoredRange) -> bool:
    return found.lower is not None and found.upper is not None
