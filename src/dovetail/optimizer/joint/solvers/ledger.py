"""Who takes which step: the state that greedy and local search change, with the total cost always at hand.

A step is paid while at least one path takes it, an intermediate is kept while at least one path probes it (then its
own paths exist too). So adding and removing one path has a price that counts what others already pay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dovetail.optimizer.joint.plan import Intermediate, JointPlan, ProbePath, QueryPaths, StorePartitioning
from dovetail.optimizer.joint.solvers.flow import Demand, Flow

ROUNDING = 1e-10


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a ledger may change; to come back to after a move that did not pay."""

    paths: tuple[tuple[int, ...] | None, ...]
    takers: tuple[int, ...]
    users: tuple[int, ...]
    partitionings: tuple[int, ...]
    cost: float
    room: float


class Ledger:
    """Starts empty: no paths, every store partitioned by its first candidate."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.paths: list[tuple[int, ...] | None] = [None] * len(flow.demands)
        self.takers = [0] * len(flow.arcs)
        self.users = [0] * len(flow.stores)
        self.partitionings = [0] * len(flow.stores)
        self.cost = 0.0
        self.is_allowed = [True] * len(flow.stores)
        room = flow.problem.room_for_intermediates()
        # Sums of many intermediates may round up; a budget that fits exactly must fit.
        self.room = math.inf if room is None else room * (1 + ROUNDING)
        self._is_base = [store.is_base for store in flow.stores]
        self._price = [arc.costs[0] for arc in flow.arcs]
        self._target = [arc.target for arc in flow.arcs]
        self._path_arcs = [
            tuple((step.arc, step.tail, step.head) for step in demand.path_arcs) for demand in flow.demands
        ]
        self._arcs_into: list[list[int]] = [[] for _ in flow.stores]
        for number, target in enumerate(self._target):
            self._arcs_into[target].append(number)

    def snapshot(self) -> Snapshot:
        return Snapshot(
            tuple(self.paths),
            tuple(self.takers),
            tuple(self.users),
            tuple(self.partitionings),
            self.cost,
            self.room,
        )

    def restore(self, snapshot: Snapshot) -> None:
        for store, partitioning in enumerate(snapshot.partitionings):
            if partitioning != self.partitionings[store]:
                self._reprice(store, partitioning)
        self.paths = list(snapshot.paths)
        self.takers = list(snapshot.takers)
        self.users = list(snapshot.users)
        self.cost = snapshot.cost
        self.room = snapshot.room

    def partition(self, store: int, partitioning: int) -> None:
        paid = [arc for arc in self._arcs_into[store] if self.takers[arc]]
        self.cost -= sum(self._price[arc] for arc in paid)
        self._reprice(store, partitioning)
        self.cost += sum(self._price[arc] for arc in paid)

    def _reprice(self, store: int, partitioning: int) -> None:
        self.partitionings[store] = partitioning
        for arc in self._arcs_into[store]:
            self._price[arc] = self.flow.arcs[arc].costs[partitioning]

    def route(self, demand: int) -> None:
        """Take the path that adds least to what is paid already, for a demand that has none."""
        self.add(demand, self._cheapest(demand, {})[1])
        if self.room < 0:
            # Each new intermediate fitted, but not all together: only those that are kept anyway then.
            self.remove(demand)
            self.add(demand, self._cheapest(demand, dict.fromkeys(range(len(self.users)), math.inf))[1])

    def add(self, demand: int, path: tuple[int, ...]) -> None:
        self.paths[demand] = path
        for arc in path:
            self.takers[arc] += 1
            if self.takers[arc] == 1:
                self.cost += self._price[arc]
            if not self._is_base[self._target[arc]]:
                self.use(self._target[arc])

    def remove(self, demand: int) -> None:
        """Give up a path; nothing to do without one."""
        path = self.paths[demand]
        self.paths[demand] = None
        for arc in path or ():
            self.takers[arc] -= 1
            if not self.takers[arc]:
                self.cost -= self._price[arc]
            if not self._is_base[self._target[arc]]:
                self.release(self._target[arc])

    def use(self, store: int) -> None:
        """One more user of an intermediate; the first makes it kept."""
        self.users[store] += 1
        if self.users[store] == 1:
            choice = self.flow.stores[store]
            self.cost += choice.upkeep_cost
            self.room -= choice.stored
            for demand in self.flow.upkeep_demands[store]:
                self.route(demand)

    def release(self, store: int) -> None:
        self.users[store] -= 1
        if not self.users[store]:
            choice = self.flow.stores[store]
            self.cost -= choice.upkeep_cost
            self.room += choice.stored
            for demand in self.flow.upkeep_demands[store]:
                self.remove(demand)

    def closes(self, demand: int) -> bool:
        """Whether some intermediate is kept for this demand's path alone."""
        return any(self.users[self._target[arc]] == 1 for arc in self.paths[demand] or ())

    def _cheapest(self, demand: int, opening: dict[int, float]) -> tuple[float, tuple[int, ...]]:
        """Added cost and arcs of the cheapest path now. `opening` remembers what each unused intermediate would add;
        steps that two of its paths would newly share are counted twice there, so it never errs to the cheap side.
        """
        takers, users, price, target, is_base = self.takers, self.users, self._price, self._target, self._is_base
        node_count = self.flow.demands[demand].node_count
        best = [math.inf] * node_count
        best[0] = 0.0
        came: list[tuple[int, int]] = [(-1, -1)] * node_count
        for arc, tail, head in self._path_arcs[demand]:
            cost = best[tail]
            if not takers[arc]:
                cost += price[arc]
            if cost >= best[head]:
                continue
            store = target[arc]
            if not is_base[store] and not users[store]:
                cost += self._opening_cost(store, opening)
            if cost < best[head]:
                best[head] = cost
                came[head] = (arc, tail)
        path: list[int] = []
        node = node_count - 1
        while node:
            arc, node = came[node]
            path.append(arc)
        return best[-1], tuple(reversed(path))

    def _opening_cost(self, store: int, opening: dict[int, float]) -> float:
        known = opening.get(store)
        if known is None:
            choice = self.flow.stores[store]
            if not self.is_allowed[store] or choice.stored > self.room:
                known = math.inf
            else:
                known = choice.upkeep_cost
                for demand in self.flow.upkeep_demands[store]:
                    known += self._cheapest(demand, opening)[0]
            opening[store] = known
        return known

    def change_by_partition(self, store: int, partitioning: int) -> float:
        """What another partitioning of a store would add to the cost of the paths there are."""
        paid = [arc for arc in self._arcs_into[store] if self.takers[arc]]
        return sum(self.flow.arcs[arc].costs[partitioning] - self._price[arc] for arc in paid)

    def follow(self, arcs: Iterable[int], opened: Iterable[int], demands: Iterable[int]) -> None:
        """Add paths for demands that have none, over these arcs and intermediates besides those that are paid and kept
        already; somebody else found that they suffice.
        """
        lent_arcs = set(arcs)
        # Larger intermediates first: their own paths may probe smaller ones.
        lent_stores = sorted(opened, key=lambda store: -len(self.flow.stores[store].join.relations))
        # What is lent counts as paid and kept, so the cheapest paths stay within it.
        for arc in lent_arcs:
            self.takers[arc] += 1
        for store in lent_stores:
            self.users[store] += 1
        for number in demands:
            self.route(number)
        for store in lent_stores:
            self.users[store] -= 1
            if self.users[store]:
                self.room -= self.flow.stores[store].stored
                for number in self.flow.upkeep_demands[store]:
                    self.route(number)
        for arc in lent_arcs:
            self.takers[arc] -= 1
        self.cost = self.total()

    def plan(self) -> JointPlan:
        """The plan of this state; its cost is summed anew, so that rounding of many changes never shows."""
        flow = self.flow
        query_paths = [
            QueryPaths(query.name, self._paths_of(d for d, each in enumerate(flow.demands) if each.query == number))
            for number, query in enumerate(flow.problem.queries)
        ]
        kept = sorted(
            (store for store, users in enumerate(self.users) if users and not self._is_base[store]),
            key=lambda store: flow.stores[store].join,
        )
        intermediates = [Intermediate(flow.stores[s].join, self._paths_of(flow.upkeep_demands[s])) for s in kept]
        probed = {self._target[arc] for arc, takers in enumerate(self.takers) if takers}
        partitionings = sorted(
            (
                StorePartitioning(flow.stores[s].join, flow.stores[s].partitionings[self.partitionings[s]])
                for s in probed | set(kept)
            ),
            key=lambda each: each.store,
        )
        return JointPlan(tuple(query_paths), tuple(intermediates), tuple(partitionings), self.total())

    def total(self) -> float:
        steps = math.fsum(price for price, takers in zip(self._price, self.takers, strict=True) if takers)
        return steps + math.fsum(
            choice.upkeep_cost for choice, users in zip(self.flow.stores, self.users, strict=True) if users
        )

    def _paths_of(self, demands: Iterable[int]) -> tuple[ProbePath, ...]:
        return tuple(self._path_of(self.flow.demands[demand], self.paths[demand] or ()) for demand in demands)

    def _path_of(self, demand: Demand, arcs: Sequence[int]) -> ProbePath:
        steps = (self.flow.step(arc, self.partitionings[self._target[arc]]) for arc in arcs)
        return ProbePath(demand.start, tuple(steps))
