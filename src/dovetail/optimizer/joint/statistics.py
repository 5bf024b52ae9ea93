"""What is known of the data, said of the relations and predicates of the joint problem."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.optimizer.joint.engine_cost import EngineStatistics
from dovetail.optimizer.joint.problem import Predicate
from dovetail.optimizer.joint.view import NamedQuery
from dovetail.optimizer.passes.choose_probe_orders import edge_of
from dovetail.plan.live_query import LiveQuery, as_row, store_of
from dovetail.query.expression import Expression
from dovetail.stats.catalog import StatsCatalog

ASSUMED_LIVE_BATCHES = 10.0
"""How many batches' rows a store holds, where nothing was counted yet."""
Side = tuple[Predicate, str]


def joint_statistics(queries: Iterable[NamedQuery], stats: StatsCatalog, partitions: int) -> EngineStatistics:
    batch_rows: dict[str, float] = {}
    live_rows: dict[str, float] = {}
    row_bytes: dict[str, float] = {}
    matches: dict[Predicate, float] = {}
    selections: dict[Side, set[Expression]] = {}
    keys: dict[Side, str] = {}
    store_by_relation: dict[str, str] = {}
    for named in queries:
        live = named.live
        for relation in live.query.relations:
            name, store = named.relation_by_alias[relation.alias], store_of(relation)
            live_rows[name] = stats.rows(relation.stream).value
            batch = stats.batch_rows(relation.stream)
            batch_rows[name] = batch.value if batch is not None else live_rows[name] / ASSUMED_LIVE_BATCHES
            row_bytes[name] = stats.row_bytes(store).value
            store_by_relation[name] = store
        for equality in live.query.equalities:
            predicate = named.predicate(equality)
            match = stats.match(edge_of(live.query, equality)).value * _time_share(live, equality.aliases, stats)
            matches[predicate] = max(min(match, 1.0), matches.get(predicate, 0.0))
            for alias in equality.aliases:
                side = predicate, named.relation_by_alias[alias]
                selections.setdefault(side, set()).add(as_row(live.query.relation(alias).selection, alias))
                keys[side] = str(as_row(equality.side_of(alias), alias))
        for predicate, edge in named.weak_predicates.items():
            match = edge.match * _time_share(live, edge.aliases, stats)
            matches[predicate] = max(match, matches.get(predicate, 0.0))
            for alias in edge.aliases:
                side = predicate, named.relation_by_alias[alias]
                selections.setdefault(side, set()).add(as_row(live.query.relation(alias).selection, alias))
    shares = {side: stats.union_share(store_by_relation[side[1]], wanted).value for side, wanted in selections.items()}
    return EngineStatistics(batch_rows, live_rows, shares, matches, row_bytes, keys, partitions=partitions)


def _time_share(live: LiveQuery, aliases: frozenset[str], stats: StatsCatalog) -> float:
    """The part of the stored rows that is young enough for this query; the store keeps what its widest user needs."""
    one, other = sorted(aliases)
    uppers = [live.time_closure.get(pair) for pair in ((one, other), (other, one))]
    streams = [live.query.relation(alias).stream for alias in (one, other)]
    shares = []
    for stream, upper_us in zip(streams, uppers, strict=True):
        rate = stats.rows_per_s(stream)
        rows = stats.rows(stream).value
        if upper_us is not None and rate is not None and rows > 0:
            shares.append(min(1.0, max(upper_us, 0) / 1e6 * rate.value / rows))
    # Two bounds that both are zero leave rows of one instant, which are some.
    return max(shares) or 1.0 if len(shares) == 2 else 1.0
