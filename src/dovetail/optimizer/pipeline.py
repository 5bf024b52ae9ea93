"""The planner's pipeline: live queries -> probe trees -> stores -> one shared plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.intermediates.collapse import StandIn, collapse
from dovetail.optimizer.intermediates.maintaining_query import maintaining_query
from dovetail.optimizer.passes.choose_placing_keys import place_tree
from dovetail.optimizer.passes.derive_stores import IntermediateUsers, derive_stores
from dovetail.optimizer.passes.plan_fills import filling_query, plan_fill
from dovetail.optimizer.passes.plan_lone_rows import plan_lone_rows, plan_matched_rows
from dovetail.optimizer.passes.share_probe_prefixes import Forms, Orders, share_probe_prefixes, taken_orders
from dovetail.plan.group_plan import GroupPlan
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.lone_rows import MatchedRows
from dovetail.plan.placement import Placement, Placements
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog


def plan_queries(
    queries: tuple[LiveQuery, ...],
    streams: Mapping[str, Stream],
    placement: Placement,
    *,
    epoch: int,
    stats: StatsCatalog | None = None,
    decisions: Decisions | None = None,
    orders: Orders | None = None,
    groups: tuple[GroupPlan, ...] = (),
) -> SharedPlan:
    """A pure function of its arguments: a replayed batch plans the same.

    `groups` are those whose rows some of the queries join (see `plan_groups`). `orders` are `orders_taken` for the same
    arguments, where somebody has them already.
    """
    decisions = decisions or Decisions()
    stats = stats or StatsCatalog()
    forms = running_forms(queries, streams, decisions)
    pairing = tuple(live for live in forms.running if live.query.kind.answers_pairs)
    trees = share_probe_prefixes(pairing, stats, forms.collapsed, orders or decisions.orders)
    # Stores are indexed for what will probe them, too: an index is cheap on arrival and dear afterwards.
    is_later = bool(forms.later_collapsed)
    later = share_probe_prefixes(pairing, stats, forms.later_collapsed, decisions.orders) if is_later else ()
    maintaining = {live.into: live for live in forms.running if live.into is not None}
    filled = [(maintaining[kept.intermediate.id], kept.fill) for kept in decisions.intermediates if kept.fill]
    filling = tuple(filling_query(query) for query, _ in filled)
    lone, matched = plan_lone_rows(forms.running), plan_matched_rows(forms.running)
    telling = (*(each.tree for each in lone), *(tree for each in matched for tree in each.trees))
    fills = (plan_fill(query, source, stats, decisions.orders) for query, source in filled)
    placings = decisions.placing_keys((*trees, *later, *telling)) if decisions.placing_keys else {}
    placed = partial(place_tree, placings=placings)
    indexed = tuple(map(placed, (*trees, *later, *telling)))
    return SharedPlan(
        epoch=epoch,
        stores=derive_stores(forms.running, indexed, streams, forms.users_by_store),
        trees=tuple(map(placed, trees)),
        placements=Placements(placement),
        complete_from_by_query=tuple((live.id, live.complete_from) for live in (*forms.running, *filling)),
        fills=tuple(replace(fill, tree=placed(fill.tree)) for fill in fills),
        lone_rows=tuple(replace(each, tree=placed(each.tree)) for each in lone),
        matched_rows=tuple(
            MatchedRows(placed(each.from_left), placed(each.from_right), placed(each.again), each.emits)
            for each in matched
        ),
        groups=groups,
    )


def orders_taken(
    queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], stats: StatsCatalog, decisions: Decisions
) -> Orders:
    """By query (or what maintains an intermediate) and start: the order decided, else the greedy one."""
    forms = running_forms(queries, streams, decisions)
    return taken_orders(forms.running, stats, forms.collapsed, decisions.orders)


@dataclass(frozen=True)
class RunningForms:
    """Queries as they run by decisions: with their ranks, and those that maintain intermediates behind them.

    `collapsed` by query and start are the forms that probe intermediates now, `later_collapsed` those that will.
    """

    running: tuple[LiveQuery, ...]
    collapsed: Forms
    later_collapsed: Forms
    users_by_store: Mapping[str, IntermediateUsers]


def running_forms(queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], decisions: Decisions) -> RunningForms:
    queries = tuple(live.ranked(decisions.rank_order) for live in queries)
    query_by_id = {live.id: live for live in queries}
    maintaining = tuple(maintaining_query(kept, query_by_id, streams) for kept in decisions.intermediates)
    stand_ins: dict[tuple[str, str], list[StandIn]] = {}
    later_stand_ins: dict[tuple[str, str], list[StandIn]] = {}
    users_by_store: dict[str, IntermediateUsers] = {}
    for kept in decisions.intermediates:
        for use in kept.uses:
            stand_in = StandIn(use.aliases, kept.intermediate)
            for start in use.wanted_starts:
                later_stand_ins.setdefault((use.query, start), []).append(stand_in)
            for start in use.starts:
                stand_ins.setdefault((use.query, start), []).append(stand_in)
        forms = (
            collapse(query_by_id[use.query], [StandIn(use.aliases, kept.intermediate)], streams) for use in kept.uses
        )
        users_by_store[kept.intermediate.id] = IntermediateUsers(kept.intermediate, tuple(forms))
    return RunningForms(
        (*queries, *maintaining),
        {key: collapse(query_by_id[key[0]], own, streams) for key, own in stand_ins.items()},
        {key: collapse(query_by_id[key[0]], own, streams) for key, own in later_stand_ins.items()},
        users_by_store,
    )
