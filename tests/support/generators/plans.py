"""Plans as random as they may be, and others every few batches: no answer may depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from dovetail.engine.planning.fill_intermediates import FillPolicy
from dovetail.kernels.match.hash_keys import PLACING_BITS
from dovetail.optimizer.decisions import Decide, Decisions
from dovetail.optimizer.intermediates.candidates import intermediates_of, keepable_subsets, starts_of
from dovetail.optimizer.passes.choose_probe_orders import reachable_from
from dovetail.optimizer.passes.weak_edges import weak_edges
from dovetail.optimizer.policies import ChosenRouting, GivenPolicies, Placings, PoliciesOf
from dovetail.plan.key_classes import key_classes
from dovetail.plan.live_query import LiveQuery, store_of
from dovetail.plan.placement import Placement, Placements, even_placement
from dovetail.plan.probe_tree import ProbeTree
from dovetail.plan.routing import RANDOM, Routing
from dovetail.plan.shared_plan import SharedPlan, usual_routing
from dovetail.plan.store_plan import IndexPlan
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog

BATCHES_PER_PLAN = (2, 3, 5)
KEPT_FROM = (None, None, 2, 4, 6)
MOST_PARTITIONS = 5


def sees_fills_through(seed: int) -> bool:
    """Whether the plans and fills of this seed begin joins late, keep them, and fill them a few rows at a time."""
    return _kept_from(seed) is not None and isinstance(random_fills(seed), ChangingBudget)


def _kept_from(seed: int) -> int | None:
    return Random(f"{seed} kept").choice(KEPT_FROM)


def random_decisions(seed: int) -> Decide:
    """Any order without needless cross products, any ranks, any subset of the joins that could be kept.

    Some keep no join for a while and then the same ones to the end: only these see a long fill through, and use it.
    """
    batches_per_plan = Random(seed).choice(BATCHES_PER_PLAN)
    kept_from = _kept_from(seed)

    def decide(
        queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], _stats: StatsCatalog, batch: int
    ) -> Decisions:
        number = batch // batches_per_plan if kept_from is None else int(batch >= kept_from)
        rng = Random(f"{seed} {number}")
        share = 0.7 if kept_from is None else number
        orders = {
            (live.id, relation.alias): _order(rng, live, relation.alias)
            for live in queries
            for relation in live.query.relations
        }
        stores = sorted({store_of(relation) for live in queries for relation in live.query.relations})
        rank_order = tuple(rng.sample(stores, len(stores)))
        chosen = []
        for live in queries:
            joined = {relation.alias: {relation.alias} for relation in live.query.relations}
            subsets = keepable_subsets(live)
            for aliases in rng.sample(subsets, len(subsets)):
                able = starts_of(replace(live, rank_order=rank_order), aliases)
                starts = tuple(start for start in able if not joined[start] & set(aliases))
                if starts and rng.random() < share:
                    for start in starts:
                        joined[start] |= set(aliases)
                    chosen.append((live, aliases, starts))
        kept = intermediates_of(chosen, streams)
        return Decisions(orders, kept, rank_order)

    return decide


def random_policies(seed: int) -> PoliciesOf:
    """Any routings, any placements, any placing keys and any number of partitions."""
    batches_per_plan = Random(seed).choice(BATCHES_PER_PLAN)

    def policies(batch: int) -> GivenPolicies:
        placing_keys = RandomPlacingKeys(Random(f"{seed} {batch // batches_per_plan} placing keys").random())
        return GivenPolicies(placing_keys, RandomPlacements(seed, batch), RandomRoutings(seed, batch))

    return policies


@dataclass(frozen=True)
class RandomPlacingKeys:
    """Any of several keys places an index, or all of them do; the other side of a join may be another index then."""

    seed: float

    def __call__(self, trees: tuple[ProbeTree, ...]) -> Placings:
        rng = Random(f"{self.seed} placings")
        steps = {(node.step.target, node.step.index.keys): None for tree in trees for node in tree.walk()}
        chosen = {each: rng.choice([None, *range(len(each[1]))]) for each in steps if len(each[1]) > 1}
        return {each: place for each, place in chosen.items() if place is not None}


@dataclass(frozen=True)
class RandomRoutings:
    """Any routing for every keyed index, another with every batch; codes are split that there are."""

    seed: int
    batch: int

    def __call__(
        self, plan: SharedPlan, stats: StatsCatalog, _running: tuple[ChosenRouting, ...]
    ) -> tuple[ChosenRouting, ...]:
        rng = Random(f"{self.seed} {self.batch} routings")
        chosen = []
        for store in plan.stores:
            for index in store.indexes:
                codes = _codes_seen(stats, store.id, index)
                routing = self._routing(rng, codes) if index.keys else rng.choice((usual_routing(index), RANDOM))
                chosen.append(ChosenRouting(store.id, index.id, routing, "by chance"))
        return tuple(chosen)

    def _routing(self, rng: Random, codes: list[int]) -> Routing:
        subgroups = rng.choice([None, None, 1, 2, 3, 4])
        if subgroups == 1:
            return Routing(subgroups=1)
        split = rng.sample(codes, rng.randint(0, len(codes)))
        stored = rng.randint(0, len(split))
        return Routing(subgroups, tuple(sorted(split[:stored])), tuple(sorted(split[stored:])))


@dataclass(frozen=True)
class RandomPlacements:
    """Any number of partitions, mostly another with every batch; for every use any placement, or the usual one.

    Uses of one key class are placed apart as often as together: it costs, but no answer may depend on it.
    """

    seed: int
    batch: int

    def __call__(self, plan: SharedPlan, _stats: StatsCatalog, _running: Placements | None) -> Placements:
        batches_per_count = 1 + self.seed % 2
        count = Random(f"{self.seed} {self.batch // batches_per_count} partitions").randint(1, MOST_PARTITIONS)
        rng = Random(f"{self.seed} {self.batch} placements")
        group_count = plan.placement.group_count
        usual = _placement(rng, group_count, count)
        placement_by_use = {}
        for uses in key_classes(plan):
            alike = _placement(rng, group_count, count) if rng.random() < 0.5 else None
            for use in sorted(uses):
                if alike is not None or rng.random() < 0.7:
                    placement_by_use[use] = alike or _placement(rng, group_count, count)
        return Placements.of(usual, placement_by_use)


def _placement(rng: Random, group_count: int, partition_count: int) -> Placement:
    """Even, by chance, or all in few of the partitions."""
    if rng.random() < 0.2:
        return even_placement(group_count, partition_count)
    used = rng.sample(range(partition_count), rng.randint(1, partition_count))
    return Placement(tuple(rng.choice(used) for _ in range(group_count)), partition_count)


def _codes_seen(stats: StatsCatalog, store: str, index: IndexPlan) -> list[int]:
    keys = stats.observed.keys.get((store, index.id))
    seen = {code for sketch in keys.sketch_by_batch.values() for code in sketch.codes} if keys else set()
    if index.placing is None:
        return sorted(seen)
    # A sketch has such codes turned: the bits that place them are the last.
    return sorted((code >> PLACING_BITS) | (code << (64 - PLACING_BITS)) % (1 << 64) for code in seen)


@dataclass(frozen=True)
class ChangingBudget(FillPolicy):
    """Another number of rows with every batch: fills stop in the middle of a bucket, go on there, and end."""

    rng: Random = field(default_factory=Random)

    def budget_rows(self, _stats: StatsCatalog, _streams: Mapping[str, Stream]) -> int:
        return self.rng.choice([1, 2, 3, 5, 8])


def random_fills(seed: int) -> FillPolicy:
    """Fills wherever there is something to fill, mostly so few rows at a time that they take several batches."""
    rng = Random(f"{seed} fills")
    should_fill = rng.random() < 0.9
    if rng.random() < 0.5:
        return ChangingBudget(lambda _cost: should_fill, rng=rng)
    return FillPolicy(lambda _cost: should_fill, rows_a_batch=rng.choice([2, 4, 8, 1000]))


def _order(rng: Random, live: LiveQuery, start: str) -> tuple[str, ...]:
    order = [start]
    remaining = [relation.alias for relation in live.query.relations if relation.alias != start]
    while remaining:
        order.append(rng.choice(_next_of(rng, live, order, remaining)))
        remaining.remove(order[-1])
    return tuple(order)


def _next_of(rng: Random, live: LiveQuery, order: list[str], remaining: list[str]) -> list[str]:
    """Mostly what planners would take; where conditions without equality connect, sometimes anything."""
    is_any = rng.random() < 0.2 and bool(weak_edges(live.query))
    return remaining if is_any else reachable_from(live.query, order, remaining)
