"""The plan that all queries share, as a record."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from dovetail.engine.explain.describe.costs import describe_change, describe_cost
from dovetail.engine.explain.describe.look import Look
from dovetail.engine.explain.describe.names import stored_member, stored_text
from dovetail.engine.explain.describe.placement import describe_placement
from dovetail.engine.explain.describe.steps import describe_probes
from dovetail.engine.explain.describe.stores import describe_groups, describe_intermediate, describe_store
from dovetail.engine.explain.records.partitions import PartitioningExplained
from dovetail.engine.explain.records.plan import PlanExplained


def describe_plan(look: Look) -> PlanExplained:
    plan, changes = look.plan, look.engine.plans.changes
    return PlanExplained(
        epoch=plan.epoch,
        batch=look.state.batch + 1,
        queries=tuple(live.name for live in look.planned.asked),
        hops=plan.hop_count,
        stores=tuple(describe_store(look, store) for store in plan.stores),
        intermediates=tuple(describe_intermediate(look, kept) for kept in look.planned.decisions.intermediates),
        groups=tuple(describe_groups(look, group) for group in plan.groups),
        partitioning=_partitioning(look),
        probes=describe_probes(look),
        cost=describe_cost(look),
        last_change=describe_change(changes[-1], _in_sql(look, changes[-1].reasons)) if changes else None,
        next_change=_in_sql(look, look.planned.reasons) if plan.epoch != look.state.epoch else (),
    )


def _in_sql(look: Look, reasons: Iterable[str]) -> tuple[str, ...]:
    """Reasons name selections by their canonical texts, as statistics know them."""
    sql_by_text = {
        str(selection): stored_text(selection, stored_member(look, store.id))
        for store in look.plan.stores
        for selection in store.tested_selections
    }
    # Of two texts one may be part of the other.
    longest_first = sorted(sql_by_text, key=len, reverse=True)
    return tuple(
        reduce(lambda told, text: told.replace(text, sql_by_text[text]), longest_first, reason) for reason in reasons
    )


def _partitioning(look: Look) -> PartitioningExplained:
    usual, plans, last = look.plan.placement, look.engine.plans, look.recent.last
    placed = None if plans.placer is None else describe_placement(plans.placer, last.shipped.rows if last else None)
    return PartitioningExplained(
        usual.group_count,
        usual.partition_count,
        tuple(usual.partition_by_group.count(number) for number in range(usual.partition_count)),
        placed,
        None if plans.elastic is None else plans.elastic.now,
    )
