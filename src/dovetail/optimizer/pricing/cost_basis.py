"""Where an expected figure comes from: it is known as little as the least known of what it was computed from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dovetail.optimizer.joint.plan import Step
from dovetail.optimizer.joint.problem import Predicate
from dovetail.optimizer.joint.view import NamedQuery
from dovetail.optimizer.passes.choose_probe_orders import edge_of
from dovetail.plan.live_query import as_row, store_of
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.estimate import Origin

_TRUST = list(Origin)


def weakest(origins: Iterable[Origin]) -> Origin:
    """The least trusted; what depends on nothing is given."""
    return max(origins, key=_TRUST.index, default=Origin.GIVEN)


@dataclass(frozen=True)
class CostBasis:
    """Origins by relation of what a batch brings and of what is live, and by predicate of who meets whom."""

    batch: Mapping[str, Origin]
    live: Mapping[str, Origin]
    predicate: Mapping[Predicate, Origin]

    def of(self, step: Step) -> Origin:
        others = (self.live[relation] for relation in step.result.relations if relation != step.start)
        return weakest((self.batch[step.start], *others, *(self.predicate[each] for each in step.result.predicates)))


def cost_basis(queries: Iterable[NamedQuery], stats: StatsCatalog) -> CostBasis:
    batch: dict[str, Origin] = {}
    live: dict[str, Origin] = {}
    predicates: dict[Predicate, Origin] = {}
    for named in queries:
        query = named.live.query
        for relation in query.relations:
            name = named.relation_by_alias[relation.alias]
            counted = stats.batch_rows(relation.stream)
            batch[name] = Origin.ASSUMED if counted is None else counted.origin
            live[name] = stats.rows(relation.stream).origin
        for equality in query.equalities:
            predicate = named.predicate(equality)
            relations = [query.relation(alias) for alias in sorted(equality.aliases)]
            selections = [stats.selection(as_row(each.selection, each.alias), store_of(each)) for each in relations]
            origins = [stats.match(edge_of(query, equality)).origin, *(each.origin for each in selections)]
            predicates[predicate] = weakest((*origins, predicates.get(predicate, Origin.GIVEN)))
        predicates |= dict.fromkeys(named.weak_predicates, Origin.ASSUMED)
    return CostBasis(batch, live, predicates)
