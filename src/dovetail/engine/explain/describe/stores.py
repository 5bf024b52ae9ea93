"""What is kept, as records: stores, kept joins, groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dovetail.engine.bad_rows import BadRowTotals
from dovetail.engine.explain.describe.look import Look
from dovetail.engine.explain.describe.names import Member, stored_member, stored_text
from dovetail.engine.explain.records.stores import (
    GroupsExplained,
    IndexExplained,
    IntermediateExplained,
    IntermediateUser,
    KeptUntil,
    RoutingExplained,
    RowFigures,
    SelectionExplained,
    StoreExplained,
    WindowExplained,
)
from dovetail.engine.planning.settle_intermediates import kept_for
from dovetail.optimizer.intermediates.kept import KeptIntermediate, Use
from dovetail.plan.group_plan import Detail, Fold, GroupPlan, GroupTable, PartialColumn
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.query.expression import TRUE, Expression
from dovetail.query.sql_text import sql_text
from dovetail.stats.estimate import Estimate, Origin


def describe_store(look: Look, store: StorePlan, selections: Iterable[Expression] | None = None) -> StoreExplained:
    """With what these selections (all, if None) let pass."""
    tested = [s for s in (store.tested_selections if selections is None else selections) if s != TRUE]
    keep, hop = store.retention.keep_us_by_stream, store.hop_window
    stored = stored_member(look, store.id)
    is_of_stream = store.id in look.stream_by_store
    bad = look.state.bad_row_totals.get(store.stream, BadRowTotals()) if is_of_stream else BadRowTotals()
    return StoreExplained(
        store=store.id,
        name=stored.name,
        window=None if hop is None else WindowExplained(hop.size_us / 1e6, hop.slide_us / 1e6),
        is_intermediate=not is_of_stream,
        columns=store.columns,
        keeps_all_rows=store.keeps_all,
        retention=None if keep is None else tuple(KeptUntil(stream, us / 1e6) for stream, us in keep),
        rows=_rows(look, store),
        stored_bytes=sum(meta.size_bytes for meta in look.state.buckets if meta.store == store.id),
        indexes=tuple(_index(look, store.id, index, stored) for index in store.indexes),
        selections=tuple(
            SelectionExplained(str(s), stored_text(s, stored), look.stats.selection(s, store.id)) for s in tested
        ),
        queries=_users_of(look, store.id),
        bad_rows=bad.rows,
        last_bad_row=bad.last_reason,
    )


def _users_of(look: Look, store: str) -> tuple[str, ...]:
    """Names of the queries that have the store's stream among theirs, or that use the intermediate."""
    kept = look.kept_by_store.get(store)
    used = set() if kept is None else {use.query for use in kept.uses}
    used |= {leg.query for asked, leg in look.plan.asked_legs() if asked == store}
    return tuple(look.served.names(used & look.live_by_id.keys()))


def _rows(look: Look, store: StorePlan) -> RowFigures:
    stats, stream = look.stats, store.stream
    if store.id not in look.stream_by_store:
        return RowFigures(None, None, None, None, None, stats.stored_rows(store.id))
    by_clock = look.recent.rows_per_s(stream)
    return RowFigures(
        stats.batch_rows(stream),
        stats.rows_per_s(stream),
        None if by_clock is None else Estimate(by_clock, Origin.EXACT),
        stats.late_share(stream),
        stats.rows(stream),
        stats.stored_rows(store.id),
    )


def _index(look: Look, store: str, index: IndexPlan, stored: Member) -> IndexExplained:
    distinct = look.stats.distinct(store, index.id)
    shares = sorted(look.stats.heavy_share_by_code(store, index.id).values(), reverse=True)
    return IndexExplained(
        index=index.id,
        keys=tuple(stored_text(key, stored) for key in index.keys),
        order=None if index.order is None else stored_text(index.order, stored),
        distinct_keys=distinct,
        frequent_keys=None if distinct is None else len(shares),
        largest_key_share=shares[0] if shares else None,
        routing=_routing(look, store, index.id),
    )


def _routing(look: Look, store: str, index: str) -> RoutingExplained:
    chosen = next(each for each in look.planned.routings if (each.store, each.index) == (store, index))
    routing = chosen.routing
    split = len(routing.split_stored), len(routing.split_probing)
    return RoutingExplained(str(routing), chosen.because, routing.subgroups, *split)


def describe_intermediate(look: Look, kept: KeptIntermediate, only_for: str | None = None) -> IntermediateExplained:
    """With all its users, or with the starts of one query only."""
    store = kept.intermediate.id
    joins = look.priced.running.joins_by_store[store]
    upkeep = [each for each in look.priced.book.upkeep if each.join in joins]
    return IntermediateExplained(
        store=store,
        name=stored_member(look, store).name,
        members=kept.intermediate.streams,
        joins_rows_from_batch=kept.complete_from,
        users=tuple(
            IntermediateUser(", ".join(look.served.names([use.query])), start, *_standing(look, kept, use, start))
            for use in kept.uses
            if only_for in (None, use.query)
            for start in use.wanted_starts
        ),
        expected_rows=sum(each.stored_rows for each in upkeep),
        expected_bytes=sum(each.stored_bytes for each in upkeep),
        upkeep_ms=sum(each.cost_s for each in upkeep) * 1e3,
        observed_rows=look.stats.stored_rows(store),
        observed_bytes=sum(meta.size_bytes for meta in look.state.buckets if meta.store == store),
    )


def _standing(look: Look, kept: KeptIntermediate, use: Use, start: str) -> tuple[bool, str | None]:
    if start in use.starts:
        return True, None
    if kept.fill is not None:
        return False, f"it is being filled with rows older than batch {kept.fill.before_batch}"
    live = look.live_by_id[use.query]
    batch = look.state.batch + 1
    since = kept_for(use, live, kept.intermediate, look.engine.streams.by_name, replace(look.state, batch=batch))
    if since == batch:
        return False, f"it begins with batch {batch}"
    if any(live.time_closure.get((alias, start)) is None for alias in use.aliases):
        return False, f"rows older than batch {since} never die for it: no time bound lets them go"
    return False, f"it waits until everything older than batch {since} is dead"


def describe_groups(look: Look, group: GroupPlan, name_by_relation: Mapping[str, str] | None = None) -> GroupsExplained:
    """Relations are called as one query does, or as their streams."""
    joining = look.live_by_id[group.id].query
    called = name_by_relation or {relation.alias: relation.stream for relation in joining.relations}
    tables = {table.id for table in group.tables}
    buckets = [meta for meta in look.state.buckets if meta.store in tables]
    joined = {
        column.name: sql_text(column.expression, lambda column: f"{called[column.relation]}.{column.name}")
        for column in joining.output
    }
    return GroupsExplained(
        store=group.id,
        keys=tuple(joined[name] for name, _ in group.keys),
        partial_columns=tuple(column.name for column in group.table.columns),
        details=tuple(table.id.removeprefix(f"{group.id}/") for table in group.details),
        keeps=(
            *(_folded(column, joined) for column in group.columns),
            *(_detail(table, joined) for table in group.details),
        ),
        pane_s=None if group.pane is None else group.pane.width_us / 1e6,
        is_bounded=group.pane is not None,
        stored_rows=sum(meta.rows for meta in buckets),
        stored_bytes=sum(meta.size_bytes for meta in buckets),
        queries=tuple(look.served.names([group.id])),
    )


def _folded(column: PartialColumn, joined: Mapping[str, str]) -> str:
    arguments = ", ".join(joined.get(name, name) for name in column.arguments)
    return "COUNT(*)" if column.fold is Fold.ROWS else f"{column.fold.value.upper()}({arguments})"


def _detail(table: GroupTable, joined: Mapping[str, str]) -> str:
    arguments = ", ".join(joined.get(name, name) for name in table.arguments)
    return f"distinct values of {arguments}" if table.detail is Detail.DISTINCT else f"a sketch of {arguments}"
