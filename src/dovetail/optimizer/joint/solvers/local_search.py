"""Improve a ledger move by move; it never ends worse than it began.

Moves, each undone unless the total falls: one start looks for its path again, given what the others pay; a store
changes its partitioning and all who could probe it look again; an intermediate is dropped, or kept, and all who could
probe it look again. Where none helps, some starts around a store give up their paths and take new ones in another
order, which may cost a little more for a while (simulated annealing); the best state is what remains.
The moves are the same for the same input; only the deadline depends on the clock.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable
from functools import partial

from dovetail.optimizer.joint.solvers.flow import Flow
from dovetail.optimizer.joint.solvers.ledger import Ledger

SEED = 1
SHAKES_PER_DEMAND = 2
FIRST_SLACK = 0.005
"""How much worse a state may be on average to be taken, at first, as a share of the cost."""
MINIMAL_GAIN = 1e-9
"""Relative; smaller gains are rounding and could alternate for ever."""


class LocalSearch:
    """`on_improvement` hears every lower cost; `deadline` is a time of `time.perf_counter`."""

    def __init__(self, ledger: Ledger, deadline: float, on_improvement: Callable[[float], None] | None = None) -> None:
        self.ledger = ledger
        self.flow: Flow = ledger.flow
        self.deadline = deadline
        self.on_improvement = on_improvement
        self._random = random.Random(SEED)
        demands_by_store: list[set[int]] = [set() for _ in self.flow.stores]
        for number, demand in enumerate(self.flow.demands):
            for step in demand.path_arcs:
                demands_by_store[self.flow.arcs[step.arc].target].add(number)
        self._demands_by_store = [sorted(demands) for demands in demands_by_store]

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self.deadline

    def run(self, shakes: int | None = None) -> None:
        """Until no single move helps, then shakes: a worse state may be taken, ever less worse; the best one stays."""
        self.descend()
        count = SHAKES_PER_DEMAND * len(self.flow.demands) if shakes is None else shakes
        best = self.ledger.snapshot()
        for number in range(count if self.flow.stores else 0):
            if self.is_over:
                break
            before = self.ledger.snapshot()
            self._shake()
            slack = FIRST_SLACK * before.cost * (1 - number / count)
            # Exponentially distributed, as in simulated annealing.
            if self.ledger.cost > before.cost - slack * math.log(1 - self._random.random()):
                self.ledger.restore(before)
            elif self.ledger.cost < best.cost * (1 - MINIMAL_GAIN):
                best = self.ledger.snapshot()
                self._report()
        self.ledger.restore(best)
        self.descend()

    def descend(self) -> None:
        is_better = True
        while is_better and not self.is_over:
            is_better = self._reroute_all()
            is_better |= self._repartition_all()
            is_better |= self._rematerialize_all()

    def _is_gain(self, move: Callable[[], None]) -> bool:
        before = self.ledger.snapshot()
        move()
        if self.ledger.cost < before.cost - MINIMAL_GAIN * max(1.0, abs(before.cost)):
            self._report()
            return True
        self.ledger.restore(before)
        return False

    def _report(self) -> None:
        if self.on_improvement:
            self.on_improvement(self.ledger.cost)

    def _reroute_all(self) -> bool:
        before = self.ledger.cost
        for number in range(len(self.flow.demands)):
            if self.is_over:
                break
            self._reroute([number])
        is_better = self.ledger.cost < before - MINIMAL_GAIN * max(1.0, abs(before))
        if is_better:
            self._report()
        return is_better

    def _reroute(self, demands: Iterable[int]) -> None:
        """One after the other, never to a worse total.

        The old path's price is what giving it up saved, so the cheapest path is no worse. Not so if giving it up closed
        an intermediate, whose price to open is overrated, or if intermediates compete for room: then the old state is
        kept at hand.
        """
        ledger = self.ledger
        for number in demands:
            if ledger.paths[number] is None or len(self.flow.demands[number].path_arcs) == 1:
                continue
            before = ledger.snapshot() if ledger.room < math.inf or ledger.closes(number) else None
            ledger.remove(number)
            ledger.route(number)
            if before and ledger.cost > before.cost:
                ledger.restore(before)

    def _repartition_all(self) -> bool:
        is_better = False
        for store, choice in enumerate(self.flow.stores):
            if not choice.is_base and not self.ledger.users[store]:
                continue
            for partitioning in range(len(choice.partitionings)):
                if self.is_over:
                    return is_better
                if partitioning != self.ledger.partitionings[store]:
                    is_better |= self._is_gain(partial(self._repartition, store, partitioning))
        return is_better

    def _repartition(self, store: int, partitioning: int) -> None:
        self.ledger.partition(store, partitioning)
        self._reroute(self._demands_by_store[store])

    def _rematerialize_all(self) -> bool:
        is_better = False
        for store, choice in enumerate(self.flow.stores):
            if self.is_over:
                break
            if choice.is_base:
                continue
            if self.ledger.users[store]:
                is_better |= self._is_gain(partial(self._drop, store))
            elif choice.stored <= self.ledger.room:
                for partitioning in range(len(choice.partitionings)):
                    is_better |= self._is_gain(partial(self._keep, store, partitioning))
        return is_better

    def _drop(self, store: int) -> None:
        self.ledger.is_allowed[store] = False
        users = [number for number in self._demands_by_store[store] if self._probes(number, store)]
        for number in users:
            self.ledger.remove(number)
        self._fill(users)
        self.ledger.is_allowed[store] = True

    def _keep(self, store: int, partitioning: int) -> None:
        """Kept for a while by nobody: those who look again find its upkeep paid. Who stays decides whether it pays."""
        if self.ledger.users[store]:
            return
        self.ledger.partition(store, partitioning)
        self.ledger.use(store)
        self._reroute(self._demands_by_store[store])
        self.ledger.release(store)

    def _probes(self, demand: int, store: int) -> bool:
        return any(self.flow.arcs[arc].target == store for arc in self.ledger.paths[demand] or ())

    def _shake(self) -> None:
        """Around one store: perhaps another partitioning, all its demands anew in a random order."""
        store = self._random.randrange(len(self.flow.stores))
        around = [n for n in self._demands_by_store[store] if self.ledger.paths[n] is not None]
        choice = self.flow.stores[store]
        if len(choice.partitionings) > 1 and self._random.random() < 0.5:
            self.ledger.partition(store, self._random.randrange(len(choice.partitionings)))
        chosen = self._random.sample(around, min(len(around), self._random.randint(2, 24)))
        for number in chosen:
            self.ledger.remove(number)
        self._fill(chosen)
        self._reroute(around)

    def _fill(self, demands: Iterable[int]) -> None:
        """Paths for those that need one: queries always, upkeep if its intermediate is (still, or again) kept."""
        for number in demands:
            demand = self.flow.demands[number]
            is_wanted = demand.intermediate is None or self.ledger.users[demand.intermediate]
            if is_wanted and self.ledger.paths[number] is None:
                self.ledger.route(number)
