"""The search space: for each query (or intermediate) and start, a flow over connected sub-joins.

    q = R-S-T, start S:      S --R--> R+S --T--> R+S+T
                             S --T--> S+T --R--> R+S+T
    start R:                 R --S--> R+S --T--> R+S+T,   R --(S+T)--> R+S+T

A node is a start and what is joined so far, an arc the next store; a probe order is a path from the start to the whole
join. Paths that meet in a node go on alike in some best plan, so subsets stand for all orders through them, of which
there are exponentially more. Arcs are numbered over all queries: those with one number are one step, paid once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dovetail.optimizer.joint.plan import Step
from dovetail.optimizer.joint.problem import Attribute, Problem, QueryGraph, SubJoin, partitioning_candidates

ArcKey = tuple[str, int, int, int]
"""Start, and the numbers of the joined part, the target and the result."""


@dataclass(frozen=True, slots=True)
class StoreChoice:
    """A store that a plan may probe, and the attributes it may be partitioned by (never empty)."""

    join: SubJoin
    partitionings: tuple[Attribute | None, ...]
    stored: float
    upkeep_cost: float

    @property
    def is_base(self) -> bool:
        return self.join.is_base


@dataclass(frozen=True, slots=True)
class Arc:
    """A step whose target's partitioning is still open: one cost per partitioning of the target."""

    start: str
    joined: SubJoin
    target: int
    result: SubJoin
    costs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PathArc:
    """An arc between two nodes of one demand; nodes are numbered within the demand, the start is 0."""

    arc: int
    tail: int
    head: int


@dataclass(frozen=True, slots=True)
class Demand:
    """One path is wanted from the start to the last node: always for a query, else if the intermediate is kept."""

    query: int | None
    intermediate: int | None
    start: str
    node_count: int
    path_arcs: tuple[PathArc, ...]
    """Ordered by tail, smaller sub-joins first: one pass over them finds cheapest paths."""


@dataclass(frozen=True)
class Flow:
    problem: Problem
    stores: tuple[StoreChoice, ...]
    arcs: tuple[Arc, ...]
    demands: tuple[Demand, ...]
    upkeep_demands: tuple[tuple[int, ...], ...]
    """Per store the demands that maintain it; none for base relations."""

    def step(self, arc: int, partitioning: int) -> Step:
        chosen = self.arcs[arc]
        store = self.stores[chosen.target]
        return Step(chosen.start, chosen.joined, store.join, store.partitionings[partitioning], chosen.result)

    def paths(self, demand: Demand) -> Iterator[tuple[int, ...]]:
        """All candidate orders of a demand as arcs; for small cases, there are exponentially many."""
        arcs_by_tail: dict[int, list[PathArc]] = {}
        for step in demand.path_arcs:
            arcs_by_tail.setdefault(step.tail, []).append(step)

        def from_node(node: int) -> Iterator[tuple[int, ...]]:
            if node == demand.node_count - 1:
                yield ()
            for step in arcs_by_tail.get(node, ()):
                for rest in from_node(step.head):
                    yield (step.arc, *rest)

        return from_node(0)


@dataclass(frozen=True, slots=True)
class _Lattice:
    """Connected sub-joins of one query by the bit mask of their relations, in ascending size."""

    join: SubJoin
    number_by_mask: dict[int, int]
    neighbours: tuple[int, ...]

    def is_adjacent(self, one: int, other: int) -> bool:
        return any(one >> bit & 1 and near & other for bit, near in enumerate(self.neighbours))


def build_flow(problem: Problem) -> Flow:
    return _FlowBuilder(problem).build()


class _FlowBuilder:
    """Numbers sub-joins, stores and arcs over all queries, in the order of first use."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.joins: list[SubJoin] = []
        self.number_by_join: dict[SubJoin, int] = {}
        self.number_by_arc: dict[ArcKey, int] = {}
        self.store_by_join: dict[int, int] = {}
        self.candidates: list[set[Attribute]] = []
        self.room = problem.room_for_intermediates()

    def build(self) -> Flow:
        lattices = [self._lattice(query) for query in self.problem.queries]
        for query, lattice in zip(self.problem.queries, lattices, strict=True):
            self._add_stores(query, lattice)
        demands: list[Demand] = []
        for number, (query, lattice) in enumerate(zip(self.problem.queries, lattices, strict=True)):
            whole = (1 << len(query.join.relations)) - 1
            path_arcs = self._demands(lattice, whole, query)
            demands += [Demand(number, None, *each) for each in path_arcs]
        upkeep_by_store = self._upkeep_demands(lattices, demands)
        stores = tuple(self._store_choice(join, store) for join, store in self.store_by_join.items())
        return Flow(
            self.problem,
            stores,
            tuple(self._arc(key, stores) for key in self.number_by_arc),
            tuple(demands),
            tuple(upkeep_by_store.get(store, ()) for store in range(len(stores))),
        )

    def _lattice(self, query: QueryGraph) -> _Lattice:
        join = query.join
        bit_by_relation = {relation: bit for bit, relation in enumerate(join.relations)}
        neighbours = [0] * len(join.relations)
        for predicate in join.predicates:
            one, other = (bit_by_relation[side.relation] for side in (predicate.first, predicate.second))
            neighbours[one] |= 1 << other
            neighbours[other] |= 1 << one
        connected = {1 << bit for bit in range(len(neighbours))}
        frontier = set(connected)
        while frontier:
            grown = {
                mask | 1 << bit for mask in frontier for bit, near in enumerate(neighbours) if near & mask
            } - connected
            connected |= grown
            frontier = grown
        number_by_mask = {}
        for mask in sorted(connected, key=lambda mask: (mask.bit_count(), mask)):
            relations = [relation for relation, bit in bit_by_relation.items() if mask >> bit & 1]
            number_by_mask[mask] = self._number(join.within(relations))
        return _Lattice(join, number_by_mask, tuple(neighbours))

    def _number(self, join: SubJoin) -> int:
        number = self.number_by_join.setdefault(join, len(self.joins))
        if number == len(self.joins):
            self.joins.append(join)
        return number

    def _add_stores(self, query: QueryGraph, lattice: _Lattice) -> None:
        whole = len(query.join.relations)
        for mask, number in lattice.number_by_mask.items():
            size = mask.bit_count()
            if size == whole or (size > 1 and not self._may_keep(query, self.joins[number])):
                continue
            store = self.store_by_join.setdefault(number, len(self.candidates))
            if store == len(self.candidates):
                self.candidates.append(set())
            self.candidates[store].update(partitioning_candidates(self.joins[number], query.join.predicates))

    def _may_keep(self, query: QueryGraph, join: SubJoin) -> bool:
        if not self.problem.materializes(query) or not query.may_probe(join):
            return False
        return self.room is None or self.problem.cost_model.stored(join) <= self.room

    def _upkeep_demands(self, lattices: Sequence[_Lattice], demands: list[Demand]) -> dict[int, tuple[int, ...]]:
        upkeep_by_store: dict[int, tuple[int, ...]] = {}
        for lattice in lattices:
            for mask, number in lattice.number_by_mask.items():
                store = self.store_by_join.get(number)
                if store is None or store in upkeep_by_store or mask.bit_count() == 1:
                    continue
                added = [Demand(None, store, *each) for each in self._demands(lattice, mask, None)]
                upkeep_by_store[store] = tuple(range(len(demands), len(demands) + len(added)))
                demands += added
        return upkeep_by_store

    def _demands(
        self, lattice: _Lattice, whole: int, owner: QueryGraph | None
    ) -> Iterator[tuple[str, int, tuple[PathArc, ...]]]:
        inside = [mask for mask in lattice.number_by_mask if mask & whole == mask]
        for bit, start in enumerate(lattice.join.relations):
            if whole >> bit & 1:
                nodes = [mask for mask in inside if mask >> bit & 1]
                targets = [
                    mask
                    for mask in inside
                    if not mask >> bit & 1
                    and self.problem.may_probe(start, self.joins[lattice.number_by_mask[mask]], owner)
                ]
                yield start, len(nodes), tuple(self._path_arcs(lattice, start, nodes, targets))

    def _path_arcs(
        self, lattice: _Lattice, start: str, nodes: Sequence[int], targets: Sequence[int]
    ) -> Iterator[PathArc]:
        position = {mask: place for place, mask in enumerate(nodes)}
        for tail, mask in enumerate(nodes):
            for target in targets:
                store = self.store_by_join.get(lattice.number_by_mask[target])
                if store is None or mask & target or not lattice.is_adjacent(mask, target):
                    continue
                head = mask | target
                numbers = lattice.number_by_mask
                arc = self.number_by_arc.setdefault(
                    (start, numbers[mask], store, numbers[head]), len(self.number_by_arc)
                )
                yield PathArc(arc, tail, position[head])

    def _store_choice(self, join: int, store: int) -> StoreChoice:
        attributes = sorted(self.candidates[store]) if self.problem.may_partition else []
        model, sub_join = self.problem.cost_model, self.joins[join]
        upkeep = 0.0 if sub_join.is_base else model.upkeep_cost(sub_join)
        return StoreChoice(sub_join, tuple(attributes) or (None,), model.stored(sub_join), upkeep)

    def _arc(self, key: ArcKey, stores: Sequence[StoreChoice]) -> Arc:
        start, joined, target, result = key
        store = stores[target]
        step_cost = self.problem.cost_model.step_cost
        costs = tuple(
            step_cost(Step(start, self.joins[joined], store.join, partitioning, self.joins[result]))
            for partitioning in store.partitionings
        )
        return Arc(start, self.joins[joined], target, self.joins[result], costs)
