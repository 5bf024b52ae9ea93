"""How each index is spread over partitions (B2, A7): by hash, as long as that keeps all partitions busy.

    keyless                                  probing rows dealt out: nothing says where a partner could be
    slowest partition above 1.15 x the mean  split the frequent keys, each on the side that has more of its rows
    still above                              ContRand with as many subgroups as keep the balance; one of all is random

A split key stays split until it has cooled to well below what splits one, and ContRand goes only when hash is clearly
balanced: a routing that changed with every batch would cost a plan with every batch.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from dovetail.optimizer.draft import Draft, count_of, revised
from dovetail.optimizer.policies import ChosenRouting, RoutingPolicy
from dovetail.optimizer.pricing.estimate_work import CodeWork, IndexWork, work_by_index
from dovetail.plan.placement import Placement
from dovetail.plan.routing import HASH, RANDOM, Routing, Routings
from dovetail.plan.shared_plan import SharedPlan, usual_routing
from dovetail.stats.catalog import StatsCatalog

MAX_IMBALANCE = 1.15
CLEARLY_BALANCED = 1.07
SPLIT_ABOVE = 0.1
"""Of the work that a partition has on average: a key with more is split where balance is lost."""
UNSPLIT_BELOW = 0.04
MIN_ROWS_A_BATCH = 1024
"""With fewer that probe, whoever has most of them is soon done."""


def revise(draft: Draft) -> Draft:
    """The plan with its routings, and the last that it needs to be whole."""
    running = draft.running
    choose = draft.policies.routing or keep_routings
    routings = choose(draft.placed, draft.now, () if running is None else running.routings)
    routings = draft.routings if routings == draft.routings else routings
    said, shipping = unusual(draft.placed, routings), draft.settings.shipping
    plan = revised(draft.plan, draft.placed, routings=said, shipping=shipping)
    if routings is draft.routings and plan is draft.plan:
        return draft
    return replace(draft, routings=routings, plan=plan)


def tell(draft: Draft) -> str:
    by_routing = Counter(str(each.routing) for each in draft.routings)
    return ", ".join(f"{count_of(count, 'index')} by {name}" for name, count in sorted(by_routing.items()))


def choose_routings(
    plan: SharedPlan, stats: StatsCatalog, running: tuple[ChosenRouting, ...]
) -> tuple[ChosenRouting, ...]:
    """A routing that stays has the reason that it was chosen for."""
    before_by_index = {(each.store, each.index): each for each in running}
    work = work_by_index(plan, stats, min_rows=MIN_ROWS_A_BATCH)
    chosen = []
    for store in plan.stores:
        for index in store.indexes:
            name = store.id, index.id
            before = before_by_index.get(name) or ChosenRouting(*name, usual_routing(index), _usual_reason(index.keys))
            routing, because = before.routing, before.because
            if index.keys and name in work:
                routing, because = _choose(work[name], before.routing, plan.placement_of(store.id, index))
            chosen.append(before if routing == before.routing else ChosenRouting(*name, routing, because))
    return tuple(chosen)


def fixed_routing(routing: Routing) -> RoutingPolicy:
    """The same for all indexes, whatever their skew; those without keys are random, too, or dealt out."""

    def choose(
        plan: SharedPlan, _stats: StatsCatalog, _running: tuple[ChosenRouting, ...]
    ) -> tuple[ChosenRouting, ...]:
        return tuple(
            ChosenRouting(store.id, index.id, routing, "the session's option says so")
            if index.keys or routing == RANDOM
            else ChosenRouting(store.id, index.id, usual_routing(index), _usual_reason(index.keys))
            for store in plan.stores
            for index in store.indexes
        )

    return choose


def keep_routings(
    plan: SharedPlan, _stats: StatsCatalog, running: tuple[ChosenRouting, ...]
) -> tuple[ChosenRouting, ...]:
    """What runs goes on, and new indexes have the usual routing."""
    return choose_routings(plan, StatsCatalog(), running)


def unusual(plan: SharedPlan, chosen: tuple[ChosenRouting, ...]) -> Routings:
    """What the plan must say of them."""
    usual = {(store.id, index.id): usual_routing(index) for store in plan.stores for index in store.indexes}
    return tuple(
        (each.store, each.index, each.routing) for each in chosen if each.routing != usual[each.store, each.index]
    )


def routing_changes(before: tuple[ChosenRouting, ...], now: tuple[ChosenRouting, ...]) -> list[str]:
    """One sentence for each index that was there and has another routing now."""
    known = {(each.store, each.index): each.routing for each in before}
    return [
        f"{each.store}{each.index} is routed by {each.routing}: {each.because}"
        for each in now
        if known.get((each.store, each.index), each.routing) != each.routing
    ]


def _usual_reason(keys: tuple[object, ...]) -> str:
    return "no partition has much more to do than others" if keys else "it has no key"


def imbalance_limit(total: float, partition_count: int) -> float:
    """How much more than the mean the slowest partition may have to do: few rows are never even."""
    return MAX_IMBALANCE + 2 * math.sqrt(partition_count / max(total, 1.0))


def _choose(work: IndexWork, before: Routing, placement: Placement) -> tuple[Routing, str]:
    fair = work.total / placement.partition_count
    kept = [code for code in before.split_codes if _work(work, code) >= UNSPLIT_BELOW * fair]
    routing = replace(
        HASH,
        split_stored=tuple(code for code in before.split_stored if code in kept),
        split_probing=tuple(code for code in before.split_probing if code in kept),
    )
    limit = imbalance_limit(work.total, placement.partition_count)
    by_hash = work.imbalance(HASH, placement)
    if work.imbalance(routing, placement) > limit:
        routing = _with_split(routing, work, SPLIT_ABOVE * fair)
    split = work.imbalance(routing, placement)
    if before.subgroups is not None and split > CLEARLY_BALANCED:
        # The hot codes of a random routing are not told apart.
        as_before = routing if before.subgroups > 1 else HASH
        grouped = replace(as_before, subgroups=before.subgroups)
        if work.imbalance(grouped, placement) <= limit:
            return grouped, f"hash would give the slowest partition {split:.2f} times the mean"
    if split > limit:
        return _with_subgroups(routing, work, placement, limit)
    if routing.split_codes:
        share = sum(_work(work, code) for code in routing.split_codes) / work.total
        return routing, (
            f"hash alone would give the slowest partition {by_hash:.2f} times the mean; "
            f"the split keys make {share:.0%} of the work"
        )
    return routing, _usual_reason((True,))


def _with_split(routing: Routing, work: IndexWork, least_work: float) -> Routing:
    hot = {code: each for code, each in work.by_code.items() if each.work >= least_work}
    new = {code: each for code, each in hot.items() if code not in routing.split_codes}
    stored = {code for code, each in new.items() if not _probes_more(each)}
    return replace(
        routing,
        split_stored=tuple(sorted({*routing.split_stored, *stored})),
        split_probing=tuple(sorted({*routing.split_probing, *(new.keys() - stored)})),
    )


def _probes_more(code: CodeWork) -> bool:
    """Dealing out the longer side spreads it evenly, and the shorter one is what all partitions must see."""
    return code.probing_rows > code.stored_rows


def _with_subgroups(routing: Routing, work: IndexWork, placement: Placement, limit: float) -> tuple[Routing, str]:
    imbalance = work.imbalance(routing, placement)
    because = f"hash would give the slowest partition {imbalance:.2f} times the mean"
    for subgroups in range(placement.partition_count // 2, 1, -1):
        grouped = replace(routing, subgroups=subgroups)
        if work.imbalance(grouped, placement) <= limit:
            return grouped, because
    return Routing(subgroups=1), because


def _work(work: IndexWork, code: int) -> float:
    found = work.by_code.get(code)
    return found.work if found else 0.0
