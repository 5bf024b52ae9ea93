"""Queries as they run: under the ranks that were decided, beside those that maintain intermediates, and in the forms
that probe these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.draft import Draft, IntermediateUsers, RunningForms, count_of
from dovetail.optimizer.intermediates.collapse import StandIn, collapse
from dovetail.optimizer.intermediates.maintaining_query import maintaining_query
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream


def revise(draft: Draft) -> Draft:
    return replace(draft, forms=derive_forms(draft.queries, draft.streams, draft.decisions))


def tell(draft: Draft) -> str:
    forms = draft.forms
    probing = f"{count_of(len(forms.collapsed), 'start')} of queries probe intermediates"
    return (
        f"{count_of(len(forms.running), 'query')} run; {probing}"
        if forms.users_by_store
        else (f"{count_of(len(forms.running), 'query')} run")
    )


def derive_forms(queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], decisions: Decisions) -> RunningForms:
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
