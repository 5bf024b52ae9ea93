"""In which order each start of each query joins: as decided, else as it runs, else greedily.

What runs goes on as long as nothing else changed than queries: one that is created or dropped gives the others no
reason to go another way.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.draft import Draft, count_of
from dovetail.optimizer.orders import Orders
from dovetail.optimizer.passes.share_probe_prefixes import taken_orders


def revise(draft: Draft) -> Draft:
    forms = draft.forms
    orders = taken_orders(forms.running, draft.stats, forms.collapsed, _decided(draft))
    return draft if orders == draft.orders else replace(draft, orders=orders)


def tell(draft: Draft) -> str:
    steps = sum(len(order) - 1 for order in draft.orders.values())
    return f"{count_of(len(draft.orders), 'order')} of {count_of(steps, 'step')}"


def _decided(draft: Draft) -> Orders:
    running, decided = draft.running, draft.decisions
    if running is not None and running.stats is draft.stats and _is_same_but_orders(running.decisions, decided):
        return {**running.orders, **decided.orders}
    return decided.orders


def _is_same_but_orders(one: Decisions, other: Decisions) -> bool:
    return (one.intermediates, one.rank_order) == (other.intermediates, other.rank_order)
