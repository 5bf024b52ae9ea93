"""Stores and all that probes them as one plan, its key groups still where they lie at first."""

from __future__ import annotations

from dataclasses import replace

from dovetail.optimizer.draft import UNNUMBERED, Draft, count_of
from dovetail.plan.fill import filled_by
from dovetail.plan.placement import Placements
from dovetail.plan.shared_plan import SharedPlan


def revise(draft: Draft) -> Draft:
    keyed = draft.keyed
    complete_from = {live.into: live.complete_from for live in draft.forms.running if live.into is not None}
    plan = SharedPlan(
        epoch=UNNUMBERED,
        stores=draft.stores,
        trees=keyed.trees,
        placements=Placements(draft.settings.first_placement),
        complete_from_by_query=(
            *((live.id, live.complete_from) for live in draft.forms.running),
            *((filled_by(fill.store), complete_from[fill.store]) for fill in keyed.fills),
        ),
        fills=keyed.fills,
        lone_rows=keyed.lone_rows,
        matched_rows=keyed.matched_rows,
        groups=draft.groups,
    )
    return replace(draft, assembled=plan)


def tell(draft: Draft) -> str:
    return f"{count_of(draft.assembled.hop_count, 'hop')}"
