"""One query's paths through the shared plan, and who shares them, as a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from dovetail.engine.admission.query_limits import limits_of
from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.engine import Engine
from dovetail.engine.explain.describe.costs import describe_query_cost
from dovetail.engine.explain.describe.look import Look
from dovetail.engine.explain.describe.names import Member, aliased_member, lookup_of, of_members
from dovetail.engine.explain.describe.steps import AskedTree, asked_trees, describe_step, why_built
from dovetail.engine.explain.describe.stores import describe_groups, describe_intermediate, describe_store
from dovetail.engine.explain.records.plan import LimitsExplained, QueryExplained
from dovetail.engine.explain.records.steps import PathExplained, Purpose, SharedStep
from dovetail.engine.explain.records.stores import SharedStore
from dovetail.optimizer.passes.plan_groups import relation_names
from dovetail.plan.live_query import LiveQuery, store_of
from dovetail.plan.probe_tree import Leg, ProbeNode
from dovetail.query.durations import short_duration
from dovetail.query.expression import Expression
from dovetail.query.growing_groups import growing_groups
from dovetail.query.join_query import JoinQuery

NOT_CREATED = "not created"


def describe_query(engine: Engine, query_id: str) -> QueryExplained:
    record = engine.queries.record(query_id)
    return _described(record, record.state.value, Look.at(engine, alone_for=(query_id,)))


def describe_preview(engine: Engine, sql: str) -> QueryExplained:
    """Of a query that is not created, as if it were created now."""
    record, planned = engine.plans.previewed(sql)
    look = Look.at_planned(engine, planned, alone_for=(record.id,))
    return replace(_described(record, NOT_CREATED, look), created_batch=None)


def _described(record: QueryRecord, state: str, look: Look) -> QueryExplained:
    asked = next((live for live in look.planned.asked if live.id == record.id), None)
    joining = look.joining_by_user.get(record.id, record.id)
    live = look.live_by_id.get(joining)
    kept = () if live is None else look.planned.decisions.intermediates
    called = _called(asked, live)
    limits = limits_of(record.options, look.engine.options.limits)
    return QueryExplained(
        query=record.name,
        sql=record.sql,
        state=state,
        error=record.error,
        created_batch=record.created_batch,
        complete_from=record.answered_from,
        complete_from_text=record.complete_from_text(_compiled(look, record, asked)),
        limits=LimitsExplained(limits.results, limits.pairs),
        growing_groups=() if asked is None else growing_groups(asked.query),
        stores=() if live is None else tuple(_stores(look, live, record.name)),
        paths=() if live is None else tuple(_Paths(look, live, record.name, called).all()),
        intermediates=tuple(
            describe_intermediate(look, each, only_for=joining)
            for each in kept
            if any(use.query == joining for use in each.uses)
        ),
        groups=describe_groups(look, look.plan.group(joining), called) if record.id in look.joining_by_user else None,
        cost=None if asked is None else describe_query_cost(look, asked),
    )


def _compiled(look: Look, record: QueryRecord, asked: LiveQuery | None) -> JoinQuery:
    return look.engine.queries.compiled(record.id) if asked is None else asked.query


def _called(asked: LiveQuery | None, joining: LiveQuery | None) -> dict[str, str]:
    """By alias of what joins the query's rows, the user's own alias: groups are joined under names that fit all."""
    if asked is None or joining is None:
        return {}
    if asked.id == joining.id:
        return {relation.alias: relation.alias for relation in asked.query.relations}
    return {name: alias for alias, name in relation_names(asked.query).items()}


def _stores(look: Look, live: LiveQuery, name: str) -> Iterator[SharedStore]:
    selections: dict[str, dict[Expression, None]] = {}
    for asked, leg in look.plan.asked_legs():
        if leg.query == live.id:
            selections.setdefault(asked, {})[leg.selection] = None
    for store_id in sorted(selections):
        store = describe_store(look, look.plan.store(store_id), selections[store_id])
        yield SharedStore(store, _others(store.queries, name))


class _Paths:
    """The paths of one query; `called` has the user's alias of each relation."""

    def __init__(self, look: Look, live: LiveQuery, name: str, called: dict[str, str]) -> None:
        self._look = look
        self._live = live
        self._name = name
        self._called = called

    def all(self) -> list[PathExplained]:
        """By what they are for, then in the order of FROM."""
        found = [
            self._path(number, asked)
            for number, relation in enumerate(self._live.query.relations)
            for asked in asked_trees(self._look.plan)
            if asked[-1].start == store_of(relation)
            and any((leg.query, leg.start) == (self._live.id, number) for leg in asked[-1].legs)
        ]
        return sorted(found, key=lambda path: list(Purpose).index(path.purpose))

    def _path(self, number: int, asked: AskedTree) -> PathExplained:
        purpose, decided_by, rows, tree = asked
        alias = self._live.query.relations[number].alias
        members = [self._member(tree.start, (alias,))]
        start, stores = members[0], [tree.start]
        steps, emits = [], list(tree.emits)
        for node in _nodes_of(tree.children, self._live.id, number):
            target = self._member(node.step.target, self._found(node, number))
            steps.append(self._step(node, stores, members, target, number))
            emits += node.emits
            members.append(target)
            stores.append(node.step.target)
        emit = next(each for each in emits if (each.query, each.start) == (self._live.id, number))
        is_padded = purpose is Purpose.LONE and self._live.query.kind.answers_pairs
        return PathExplained(
            start=self._called[alias],
            name=start.name,
            store=tree.start,
            steps=tuple(steps),
            purpose=purpose,
            decided_by=decided_by,
            padded=self._called[self._live.query.partner_of(alias)] if is_padded else None,
            rows=rows,
            into=emit.into,
            folded=emit.factorization.side.value if emit.factorization else None,
            why_built=why_built(emit, members),
        )

    def _step(
        self, node: ProbeNode, stores: Sequence[str], members: Sequence[Member], target: Member, number: int
    ) -> SharedStep:
        step = describe_step(self._look, node, tuple(stores), is_followed=False)
        (leg,) = (leg for leg in node.legs if (leg.query, leg.start) == (self._live.id, number))
        return SharedStep(
            step,
            lookup_of(node, members, target),
            _conditions(leg, (*members, target)),
            _others(step.queries, self._name),
            self._look.priced.cost_of(node).share_s * 1e3,
        )

    def _member(self, store: str, aliases: Sequence[str]) -> Member:
        return aliased_member(self._look, store, [self._called[alias] for alias in aliases])

    def _found(self, node: ProbeNode, number: int) -> tuple[str, ...]:
        """The aliases whose rows the step adds: all that an intermediate joins, in the order of its members."""
        use = self._look.use_of(node.step.target, self._live.id)
        if use is not None:
            return use.aliases
        step = self._look.priced.step_of(node, self._live.id, number)
        return tuple(self._look.priced.alias_by_relation[self._live.id][each] for each in step.target.relations)


def _conditions(leg: Leg, members: Sequence[Member]) -> tuple[str, ...]:
    """What is tested besides keys: bounds of event times, and all that no index finds."""
    uppers = {(members[each.earlier].names[0], members[each.later].names[0]): each.upper_us for each in leg.bounds}
    pairs = dict.fromkeys(min(pair, pair[::-1]) for pair in uppers)
    bounds = (_bound(one, other, uppers) for one, other in pairs)
    return (*bounds, *(of_members(residual, members) for residual in leg.residuals))


def _bound(one: str, other: str, uppers: Mapping[tuple[str, str], int]) -> str:
    """How much later than the one the other may be, or the other way round: whichever is more."""
    latest, earliest = uppers.get((one, other)), uppers.get((other, one))
    if latest is None or (earliest is not None and earliest > latest):
        return _bound(other, one, uppers)
    if earliest is None:
        if latest < 0:
            return f"{other} comes at least {short_duration(-latest)} before {one}"
        return f"{other} comes at most {short_duration(latest)} after {one}"
    if earliest == latest:
        return f"{one} and {other} are at most {short_duration(latest)} apart"
    if earliest > 0:
        return f"{other} comes from {short_duration(earliest)} before to {short_duration(latest)} after {one}"
    from_when = f"{short_duration(-earliest)} to" if earliest else "up to"
    return f"{other} comes {from_when} {short_duration(latest)} after {one}"


def _nodes_of(nodes: Iterable[ProbeNode], query: str, start: int) -> Iterator[ProbeNode]:
    for node in nodes:
        if any((leg.query, leg.start) == (query, start) for leg in node.legs):
            yield node
            yield from _nodes_of(node.children, query, start)


def _others(names: Iterable[str], own: str) -> tuple[str, ...]:
    return tuple(name for name in names if name != own)
