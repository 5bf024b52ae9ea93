"""What each pass of the pipeline writes into a draft, as text; `given` lines say what a draft begins with.

given all intermediates          every join that could be kept is, and all starts wait for it
given ready intermediates        ... and all starts may probe it
given a fill from r              ... and stored rows of r fill it
given one key of several         indexes may lie by one of their keys
given 3 partitions               of one key group each, and one more
given routing random             for all indexes
given running                    what is given ran already, by its greedy orders
given counted r = 100, now 300   rows a batch, when the running plan was made and now
given broken visibility          a plan that share_probe_prefixes spoiled; also: answers, selections
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from dovetail.core.errors import InternalError
from dovetail.core.text_tree import TextTree
from dovetail.optimizer.decisions import Decide, greedy, keep_intermediates
from dovetail.optimizer.draft import Draft, DraftSettings
from dovetail.optimizer.intermediates.kept import KeptIntermediate
from dovetail.optimizer.passes import check_plan
from dovetail.optimizer.passes.choose_placement import even_placements
from dovetail.optimizer.passes.choose_placing_keys import ChoosePlacingKeys
from dovetail.optimizer.passes.choose_routing import fixed_routing
from dovetail.optimizer.pipeline import draw
from dovetail.optimizer.planned import Planned
from dovetail.optimizer.policies import Policies
from dovetail.plan.fill import FillSource
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.plan.probe_tree import ProbeTree
from dovetail.plan.routing import RANDOM
from dovetail.plan.shared_plan import SharedPlan, store_tree
from dovetail.plan.visibility import Visibility
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.observed import BatchSeen, ObservedStats

KEY_GROUPS = 4
_COUNTED = re.compile(r"counted (\w+) = (\d+), now (\d+)")


def draft_of(
    queries: Iterable[LiveQuery], streams: Mapping[str, Stream], stats: StatsCatalog, facts: list[str]
) -> Draft:
    """What passes make of it."""
    counted = [found for fact in facts if (found := _COUNTED.fullmatch(fact))]
    before = _with_rows(stats, {found[1]: float(found[2]) for found in counted})
    given = Draft(
        tuple(queries), streams, before, 5, None, _policies(facts), DraftSettings(even_placement(KEY_GROUPS, 2))
    )
    if not counted and "running" not in facts:
        return draw(given).draft
    first = draw(replace(given, policies=Policies()))
    made = first.draft
    running = Planned(
        replace(made.plan, epoch=1),
        made.queries,
        made.decisions,
        made.stats,
        made.orders,
        (),
        made.routings,
        made.asked,
        made.plan,
    )
    now = _with_rows(stats, {found[1]: float(found[3]) for found in counted}) if counted else made.now
    return draw(replace(given, now=now, running=running), first).draft


def _with_rows(stats: StatsCatalog, rows: Mapping[str, float]) -> StatsCatalog:
    tallies = {Figure(Kind.BATCH_ROWS, (stream,)): Tally(count, 1) for stream, count in rows.items()}
    return stats.with_observed(ObservedStats().folded(BatchSeen(1, tallies))) if tallies else stats


def _policies(facts: list[str]) -> Policies:
    driver = next((fact.removeprefix("a fill from ") for fact in facts if fact.startswith("a fill from ")), None)
    keeps = driver is not None or any(fact.endswith("intermediates") for fact in facts)
    decide: Decide = keep_intermediates if keeps else greedy
    partitions = next((int(fact.split()[0]) for fact in facts if fact.endswith("partitions")), 2)

    def settle(wanted: tuple[KeptIntermediate, ...], _queries: tuple[LiveQuery, ...]) -> tuple[KeptIntermediate, ...]:
        return tuple(
            replace(
                kept,
                fill=None if driver is None else FillSource(driver, 5),
                uses=tuple(
                    replace(use, starts=use.wanted_starts if "ready intermediates" in facts else ())
                    for use in kept.uses
                ),
            )
            for kept in wanted
        )

    return Policies(
        decide,
        settle,
        ChoosePlacingKeys(2) if "one key of several" in facts else None,
        even_placements(KEY_GROUPS, partitions),
        fixed_routing(RANDOM) if "routing random" in facts else None,
    )


def _groups(draft: Draft) -> TextTree:
    joining = [f"{live.id} joins {', '.join(each.stream for each in live.query.relations)}" for live in draft.queries]
    groups = [f"{group.id} for {', '.join(user.query for user in group.users)}" for group in draft.groups]
    return TextTree("queries", (_lines("joining", joining), _lines("groups" if groups else "no groups", groups)))


def _statistics(draft: Draft) -> TextTree:
    is_now = draft.stats is draft.now
    return _lines("planned by the newest" if is_now else "planned by those of the running plan", list(draft.moved))


def _decisions(draft: Draft) -> TextTree:
    kept = [
        f"{each.intermediate.id}: wanted by new {', '.join(use.wanted_starts)} of {use.query},"
        f" may be probed by {', '.join(use.starts) or 'none'}"
        for each in draft.decisions.intermediates
        for use in each.uses
    ]
    return _lines("kept" if kept else "nothing is kept", kept)


def _forms(draft: Draft) -> TextTree:
    forms = draft.forms
    lines = [f"{live.id} runs" for live in forms.running]
    for when, collapsed in (("now", forms.collapsed), ("later", forms.later_collapsed)):
        lines += [
            f"new {start} of {query} probe {', '.join(each.stream for each in form.query.relations)} {when}"
            for (query, start), form in collapsed.items()
        ]
    return _lines("forms", lines)


def _orders(draft: Draft) -> TextTree:
    return _lines("orders", [f"{query}: {' -> '.join(order)}" for (query, _), order in draft.orders.items()])


def _fills(draft: Draft) -> TextTree:
    lines = [
        f"{fill.store} from stored {fill.driver}: {', '.join(str(node.step) for node in fill.tree.walk())}"
        for fill in draft.fills
    ]
    return _lines("fills" if lines else "no fills", lines)


def _lone_rows(draft: Draft) -> TextTree:
    trees = [*(each.tree for each in draft.lone_rows)]
    trees += [tree for each in draft.matched_rows for tree in each.trees]
    return _lines("asked" if trees else "nothing asked", [node.id for tree in trees for node in tree.walk()])


def _keys(draft: Draft) -> TextTree:
    steps = {f"{node.step.target}{node.step.index.id}" for tree in draft.keyed.trees for node in tree.walk()}
    return _lines("indexes", sorted(steps))


def _stores(draft: Draft) -> TextTree:
    return TextTree("stores", tuple(store_tree(store) for store in draft.stores))


def _assembled(draft: Draft) -> TextTree:
    plan = draft.assembled
    complete = [f"{query} complete from {batch}" for query, batch in plan.complete_from_by_query]
    parts = [f"{len(plan.stores)} stores, {len(plan.trees)} trees, {len(plan.fills)} fills, {plan.hop_count} hops"]
    return _lines("plan", parts + complete)


def _placement(draft: Draft) -> TextTree:
    usual = draft.placed.placements.usual
    groups = ", ".join(f"{group} on {owner}" for group, owner in enumerate(usual.partition_by_group))
    return _lines(f"{usual.partition_count} partitions", [f"key groups: {groups}"])


def _routing(draft: Draft) -> TextTree:
    unusual = [f"{store}{index}: {routing}" for store, index, routing in draft.plan.routings]
    reasons = [f"{each.store}{each.index}: {each.because}" for each in draft.routings]
    return TextTree("routings", (_lines("the plan says" if unusual else "as usual", unusual), _lines("why", reasons)))


def check_broken(draft: Draft, facts: list[str]) -> TextTree:
    """What the check says of a plan, after it was spoiled as the facts tell."""
    broken = next((fact.removeprefix("broken ") for fact in facts if fact.startswith("broken ")), "")
    try:
        check_plan.revise(replace(draft, plan=_SPOILS[broken](draft.plan)))
    except InternalError as error:
        return _lines("refused", str(error).splitlines())
    return _lines("checked", [check_plan.tell(draft)])


def _seeing_all(tree: ProbeTree) -> ProbeTree:
    nodes = (replace(node, step=replace(node.step, visibility=Visibility.UP_TO_NOW)) for node in tree.children)
    return replace(tree, children=tuple(nodes))


_SPOILS: Mapping[str, Callable[[SharedPlan], SharedPlan]] = {
    "": lambda plan: plan,
    "visibility": lambda plan: replace(plan, trees=tuple(map(_seeing_all, plan.trees))),
    "answers": lambda plan: replace(plan, trees=plan.trees[1:]),
    "selections": lambda plan: replace(plan, stores=tuple(replace(store, selections=()) for store in plan.stores)),
}


def _lines(head: str, lines: list[str]) -> TextTree:
    return TextTree(head, tuple(map(TextTree, lines)))


DRAFT_PASSES: Mapping[str, Callable[[Draft], TextTree]] = {
    "plan_groups": _groups,
    "choose_statistics": _statistics,
    "choose_decisions": _decisions,
    "derive_forms": _forms,
    "take_orders": _orders,
    "plan_fills": _fills,
    "plan_lone_rows": _lone_rows,
    "choose_placing_keys": _keys,
    "derive_stores": _stores,
    "assemble_plan": _assembled,
    "choose_placement": _placement,
    "choose_routing": _routing,
}
