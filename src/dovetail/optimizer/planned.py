"""A plan, and what it was made of: what the next plan is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.orders import Orders
from dovetail.optimizer.policies import ChosenRouting
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog


@dataclass(frozen=True)
class Planned:
    """The same queries, decisions, orders and statistics give the same plan.

    `orders` are all that the plan takes, those included that nobody decided; `routings` those of all indexes.
    `queries` join rows, for their users or for groups; `asked` are the queries as users asked them. `drawn` is the plan
    before it had the number of its epoch.
    """

    plan: SharedPlan
    queries: tuple[LiveQuery, ...]
    decisions: Decisions
    stats: StatsCatalog
    orders: Orders
    reasons: tuple[str, ...]
    routings: tuple[ChosenRouting, ...]
    asked: tuple[LiveQuery, ...]
    drawn: SharedPlan
