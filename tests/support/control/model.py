"""What a control plane must say and do, as the smallest thing that is right: a list of queries and of open changes.

It is told which statement was made and what came back, and when a batch began and committed. From that it knows of
every query in which batches it lived and which options it has, and of every statement whether it must be refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dovetail.engine.control.query_options import QueryOptions, query_options
from dovetail.engine.control.registry import QueryRecord, QueryState
from tests.support.asserts import CaseFailed
from tests.support.cases import EngineCase
from tests.support.control.steps import ALTER, CREATE, DROP, OPTIONS, Ask


@dataclass
class ModelQuery:
    """`options` and `is_dropped` as accepted; batches as they happened."""

    id: str
    name: str
    query: int
    sql: str
    options: QueryOptions
    replaced: QueryOptions = field(default_factory=QueryOptions)
    is_dropped: bool = False
    created: int | None = None
    dropped: int | None = None
    changed: int | None = None
    complete_from: int | None = None


@dataclass(frozen=True)
class OpenChange:
    """Accepted, in effect with no batch yet."""

    verb: str
    query: ModelQuery


class ControlModel:
    def __init__(self, case: EngineCase) -> None:
        self._case = case
        self.queries: dict[str, ModelQuery] = {}
        self._open: list[OpenChange] = []
        self._by_request: dict[str, tuple[Ask, ModelQuery]] = {}
        self._taken = 0

    # Statements

    def must_refuse(self, ask: Ask) -> bool:
        current = self._named(ask.name)
        known = self._by_request.get(ask.request) if ask.request else None
        if known is not None:
            is_nothing = ask.verb == DROP and ask.is_lenient and current is None
            return not self._is_same_request(known, ask) and not is_nothing
        if ask.verb == CREATE:
            return current is not None and not ask.is_lenient and not self._is_same_query(current, ask)
        return current is None and not (ask.verb == DROP and ask.is_lenient)

    def note(self, ask: Ask, query_id: str) -> None:
        """`ask` was accepted, and the answer named this query."""
        about = f"{ask} answered {query_id!r}"
        known = self._by_request.get(ask.request) if ask.request else None
        if known is not None and self._is_same_request(known, ask):
            _check(query_id == known[1].id, f"{about}, the first time {known[1].id!r}")
            return
        current = self._named(ask.name)
        if ask.verb == CREATE and not (current is not None and self._is_same_query(current, ask)):
            self._create(ask, query_id, current, about)
        elif current is None:
            _check(not query_id, f"{about}, and no query has the name")
        else:
            _check(query_id == current.id, f"{about}, the name is {current.id!r}'s")
            self._change(ask, current)

    def _create(self, ask: Ask, query_id: str, current: ModelQuery | None, about: str) -> None:
        _check(query_id not in self.queries, f"{about}, which is no new query")
        replaced = QueryOptions() if current is None else current.options
        options = query_options(OPTIONS[ask.options], base=replaced)
        made = ModelQuery(query_id, ask.name, ask.query, ask.sql(self._case), options, replaced)
        self.queries[query_id] = made
        self._accept(ask, made)
        if current is not None:
            current.is_dropped = True
            self._open.append(OpenChange(DROP, current))

    def _change(self, ask: Ask, current: ModelQuery) -> None:
        if ask.verb == DROP:
            current.is_dropped = True
            self._accept(ask, current)
        elif ask.verb == ALTER:
            options = query_options(OPTIONS[ask.options], base=current.options)
            if options != current.options:
                current.options = options
                self._accept(ask, current)

    def _accept(self, ask: Ask, query: ModelQuery) -> None:
        self._open.append(OpenChange(ask.verb, query))
        if ask.request:
            self._by_request[ask.request] = (ask, query)

    def _named(self, name: str) -> ModelQuery | None:
        return next((query for query in self.queries.values() if query.name == name and not query.is_dropped), None)

    def _is_same_query(self, query: ModelQuery, ask: Ask) -> bool:
        base = query.options if ask.is_lenient else None
        return (query.sql, query.options) == (ask.sql(self._case), query_options(OPTIONS[ask.options], base=base))

    def _is_same_request(self, first: tuple[Ask, ModelQuery], other: Ask) -> bool:
        """Whether two statements under one request id are the same; two numbers may stand for one text."""
        one, query = first
        if (one.verb, one.name) != (other.verb, other.name):
            return False
        if one.verb == CREATE:
            mine, theirs = (query_options(OPTIONS[ask.options], base=query.replaced) for ask in (one, other))
            return one.sql(self._case) == other.sql(self._case) and mine == theirs
        return one.verb == DROP or OPTIONS[one.options] == OPTIONS[other.options]

    # Batches

    def begin_batch(self) -> None:
        """What is open now takes effect if this attempt commits."""
        self._taken = len(self._open)

    def commit(self, batch: int) -> None:
        for change in self._open[: self._taken]:
            if change.verb == CREATE:
                change.query.created = batch
            elif change.verb == DROP:
                change.query.dropped = batch
            else:
                change.query.changed = batch
        del self._open[: self._taken]

    # Checks

    def check_records(self, records: tuple[QueryRecord, ...]) -> None:
        """The registry is this list: each change took effect once, with the batch that it says."""
        _check([record.id for record in records] == list(self.queries), f"other queries: {records}, {self.queries}")
        for record in records:
            query = self.queries[record.id]
            if query.complete_from is None:
                query.complete_from = record.complete_from
            expected = replace(
                record,
                name=query.name,
                sql=query.sql,
                options=query.options,
                state=_state_of(query),
                created_batch=query.created,
                dropped_batch=query.dropped,
                changed_batch=query.changed,
                complete_from=query.complete_from,
                error=None,
            )
            _check(record == expected, f"a record is {record},\n  expected {expected}")
            is_placed = query.complete_from is not None and 0 <= query.complete_from <= (query.created or 0)
            _check((query.created is None) == (query.complete_from is None), f"complete_from of {record}")
            _check(query.created is None or is_placed, f"complete_from of {record}")


def _state_of(query: ModelQuery) -> QueryState:
    if query.is_dropped:
        return QueryState.DROPPED
    return QueryState.PENDING if query.created is None else QueryState.RUNNING


def _check(is_right: bool, what: str) -> None:
    if not is_right:
        raise CaseFailed(what)
