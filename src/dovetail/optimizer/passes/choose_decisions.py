"""What is decided for all queries together: orders, ranks, and intermediates as far as they may be used yet."""

from __future__ import annotations

from dataclasses import replace

from dovetail.optimizer.draft import Draft, count_of


def revise(draft: Draft) -> Draft:
    decisions = draft.policies.decide(draft.queries, draft.streams, draft.stats, draft.batch)
    if decisions.intermediates:
        decisions = replace(decisions, intermediates=draft.policies.settle(decisions.intermediates, draft.queries))
    return draft if decisions == draft.decisions else replace(draft, decisions=decisions)


def tell(draft: Draft) -> str:
    decisions = draft.decisions
    orders = f"{count_of(len(decisions.orders), 'order')} decided" if decisions.orders else "greedy orders"
    kept = [each.intermediate.id for each in decisions.intermediates]
    return f"{orders}; {', '.join(kept)} kept" if kept else f"{orders}; nothing kept"
