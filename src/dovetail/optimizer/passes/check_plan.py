"""The last pass: a plan that breaks a promise is not run, and the error names the pass that made it.

    every query is answered from each of its starts, once            share_probe_prefixes
    a start sees this batch's rows of stores that rank above it      derive_forms
    each query that is answered is known since when                  assemble_plan
    a store keeps all that is asked of it, and first steps' indexes  derive_stores
    placements are of uses that there are                            choose_placement

That probed stores and indexes are there is checked by `SharedPlan` itself, wherever one is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dovetail.core.errors import InternalError
from dovetail.optimizer.draft import Draft, count_of
from dovetail.plan.key_classes import uses_of
from dovetail.plan.live_query import LiveQuery, store_of
from dovetail.plan.probe_tree import Emit, Leg, ProbeNode
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.visibility import Visibility, visibility


def revise(draft: Draft) -> Draft:
    """The same draft, or an `InternalError`."""
    _check_answers(draft)
    _check_steps(draft)
    _check_stores(draft)
    special = draft.plan.placements.special_uses
    missing = special - uses_of(draft.plan) if special else ()
    for store, index in missing:
        raise InternalError("choose_placement: a plan places what it does not have", where=f"{store}{index}")
    return draft


def tell(draft: Draft) -> str:
    return f"{count_of(len(draft.forms.running), 'query')} checked"


def _check_answers(draft: Draft) -> None:
    found = Counter((emit.query, emit.start) for emit in _emits(draft.plan))
    known = {query for query, _ in draft.plan.complete_from_by_query}
    for live in draft.forms.running:
        if live.id not in known:
            raise _broken("assemble_plan", live, "it is not known since when it is complete")
    for live in draft.forms.pairing:
        for start, relation in enumerate(live.query.relations):
            times = found.pop((live.id, start), 0)
            if times != 1:
                raise _broken("share_probe_prefixes", live, f"new rows of {relation.alias} answer it {times} times")
    for query, start in found:
        raise InternalError(
            "share_probe_prefixes: something is answered that nobody asked", where=f"{query}, start {start}"
        )


def _check_steps(draft: Draft) -> None:
    """Each step looks up the store that is next in its start's order, and sees of it what ranks say."""
    steps_by_start = {
        (live.id, start): _steps(draft, live, relation.alias)
        for live in draft.forms.pairing
        for start, relation in enumerate(live.query.relations)
    }
    for tree in draft.plan.trees:
        for node in tree.walk():
            step = (node.step.target, node.step.visibility)
            for leg in node.legs:
                if steps_by_start[leg.query, leg.start][node.member - 1] != step:
                    raise _wrong_step(draft, leg, node)


def _steps(draft: Draft, live: LiveQuery, alias: str) -> tuple[tuple[str, Visibility], ...]:
    form = draft.forms.collapsed.get((live.id, alias), live)
    order = draft.orders[live.id, alias]

    def make() -> tuple[tuple[str, Visibility], ...]:
        ranks = form.rank_by_alias
        return tuple(
            (store_of(form.query.relation(stored)), visibility(ranks[alias], ranks[stored])) for stored in order[1:]
        )

    return form.derived(("steps", order), make)


def _wrong_step(draft: Draft, leg: Leg, node: ProbeNode) -> InternalError:
    live = draft.forms.by_id[leg.query]
    alias = live.query.relations[leg.start].alias
    store, seen = _steps(draft, live, alias)[node.member - 1]
    if node.step.target != store:
        return _broken("share_probe_prefixes", live, f"new {alias} probe {node.step.target} in place of {store}")
    return _broken("derive_forms", live, f"new {alias} see {node.step.visibility.value} of {store}, not {seen.value}")


def _check_stores(draft: Draft) -> None:
    plan, live_by_id = draft.plan, draft.forms.by_id
    # The same records as a rule: to compare what they say takes long.
    kept = {(store.id, id(selection)) for store in plan.stores for selection in store.selections}
    for store, leg in plan.asked_legs():
        if (store, id(leg.selection)) not in kept and leg.selection not in plan.store(store).selections:
            raise _broken("derive_stores", live_by_id[leg.query], f"{store} does not keep what it selects")
    indexes = {(store.id, index.id) for store in plan.stores for index in store.indexes}
    for tree in plan.query_trees:
        for node in tree.children:
            if (tree.start, node.step.start_index.id) not in indexes:
                live = live_by_id[node.legs[0].query]
                raise _broken("derive_stores", live, f"{tree.start} has no index by which its rows probe")


def _emits(plan: SharedPlan) -> Iterator[Emit]:
    for tree in plan.trees:
        yield from tree.emits
        for node in tree.walk():
            yield from node.emits


def _broken(name: str, live: LiveQuery, what: str) -> InternalError:
    return InternalError(
        f"{name}: no plan for query {live.name}: {what}",
        where=f"query {live.id}",
        hint="drop the query, and report its SQL with this text",
    )
