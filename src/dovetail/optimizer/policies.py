"""What decides while a plan is made. A plan is data; these are the functions that passes ask, given from outside.

No answer depends on any of them, only the cost: whatever they say, each result is produced once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dovetail.optimizer.decisions import Decide, greedy
from dovetail.optimizer.intermediates.kept import KeptIntermediate
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import Placements
from dovetail.plan.probe_tree import ProbeTree
from dovetail.plan.routing import Routing
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.expression import Expression
from dovetail.stats.catalog import StatsCatalog

Keys = tuple[Expression, ...]
KeysOfStore = tuple[str, Keys]


@dataclass(frozen=True)
class ChosenRouting:
    store: str
    index: str
    routing: Routing
    because: str


Settle = Callable[[tuple[KeptIntermediate, ...], tuple[LiveQuery, ...]], tuple[KeptIntermediate, ...]]
"""The wanted intermediates as a batch has them: since when, who may probe them already, what fills them."""

Placings = Mapping[KeysOfStore, int]
"""By store and keys of an index that is probed: the position of the key that places it; the whole key where none is."""

PlacingPolicy = Callable[[tuple[ProbeTree, ...]], Placings]
"""From all trees that want indexes. No answer depends on it, only what is shipped."""

PlacementPolicy = Callable[[SharedPlan, StatsCatalog, Placements | None], Placements]
"""The placements of all uses of a plan, from what is known and the placements that run, if any do.

The number of partitions may change with them, the number of key groups may not. No answer depends on it. It is asked
with every batch, and when a plan is shown: it should return what runs unless there is reason to change. Load alone
decides how many partitions there are, so a policy takes that number from the placements that run.
"""

RoutingPolicy = Callable[[SharedPlan, StatsCatalog, tuple[ChosenRouting, ...]], tuple[ChosenRouting, ...]]
"""The routing of every index of a plan, from what is known and the routings that run; no answer depends on it."""


def as_wanted(wanted: tuple[KeptIntermediate, ...], _queries: tuple[LiveQuery, ...]) -> tuple[KeptIntermediate, ...]:
    """Where no batch runs: all that is wanted is there."""
    return wanted


@dataclass(frozen=True)
class Policies:
    """One function a choice. `placing_keys` of None: an index lies by its whole key. `placement` and `routing` of
    None: as the plan has them, and as is usual.
    """

    decide: Decide = greedy
    settle: Settle = as_wanted
    placing_keys: PlacingPolicy | None = None
    placement: PlacementPolicy | None = None
    routing: RoutingPolicy | None = None


@dataclass(frozen=True)
class GivenPolicies:
    """Of a batch: what a test or a benchmark says in place of the session's options. None: the options say it."""

    placing_keys: PlacingPolicy | None = None
    placement: PlacementPolicy | None = None
    routing: RoutingPolicy | None = None


PoliciesOf = Callable[[int], GivenPolicies]
"""By the number of a batch."""


def by_options(_batch: int) -> GivenPolicies:
    """The options say it all."""
    return GivenPolicies()
