"""Which limits hold for whom in a batch, and who passed them: tasks stop early, only this judges.

    task 1 counts 700,000 results of q, task 2 600,000      limit 1,000,000: neither stops it, together they pass it
    task 1 counts 1,000,001                                 it stops q at once; the sum passes the limit all the same

So whether a query is quarantined follows from what it finds in the batch, not from how the batch was dealt to tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.core.errors import LimitExceeded
from dovetail.engine.admission.storage_limit import StorageLimit
from dovetail.engine.control.query_options import QueryOptions
from dovetail.engine.control.registry import QueryRecord
from dovetail.engine.options.limits import Limits
from dovetail.optimizer.intermediates.kept import KeptIntermediate, maintained_by
from dovetail.plan.fill import filled_by
from dovetail.plan.group_plan import GroupPlan
from dovetail.plan.query_limits import BatchLimits, Found, QueryLimits
from dovetail.plan.shared_plan import SharedPlan


@dataclass(frozen=True)
class HeldTo:
    """What a batch is held to when it ends: what queries found in it, and what they keep after it."""

    found: BatchLimits = field(default_factory=BatchLimits)
    stored: StorageLimit | None = None


def batch_limits(
    running: Iterable[QueryRecord],
    kept: Iterable[KeptIntermediate],
    session: Limits,
    groups: Iterable[GroupPlan] = (),
) -> BatchLimits:
    """A join that is kept may take as many pairs as all its users together: each would look for its own otherwise.

    The join behind groups is that of each of their users: it goes on as long as it is within the limits of one.
    """
    usual = limits_of(QueryOptions(), session)
    own = {record.id: limits_of(record.options, session) for record in running}
    own = {query: limits for query, limits in own.items() if limits != usual}
    for group in groups:
        users = [own.get(user.query, usual) for user in group.users]
        own[group.id] = _of_all(users, max)
    for each in kept:
        users = [own.get(query, usual) for query in {use.query for use in each.uses}]
        for query in (maintained_by(each.intermediate), filled_by(each.intermediate.id)):
            own[query] = _of_all(users, sum)
    return BatchLimits(usual, own)


def _of_all(users: Sequence[QueryLimits], join: Callable[[list[float]], float]) -> QueryLimits:
    """What a join may meet and take that is made for all of them; answers are each user's own."""

    def joined(allowed: list[float | None]) -> float | None:
        return None if None in allowed else join([each for each in allowed if each is not None])

    pairs = joined([user.pairs for user in users])
    return QueryLimits(pairs=None if pairs is None else int(pairs), ms=joined([user.ms for user in users]))


def limits_of(chosen: QueryOptions, session: Limits) -> QueryLimits:
    """What the query chose, else the session's. Every result is a pair, so who may find many may meet as many."""
    results = chosen.max_results_per_batch or session.max_results_per_batch
    pairs = chosen.max_pairs_per_batch or session.max_pairs_per_batch
    if pairs is not None and chosen.max_pairs_per_batch is None and chosen.max_results_per_batch is not None:
        pairs = max(pairs, chosen.max_results_per_batch)
    return QueryLimits(results, pairs, session.max_result_bytes_per_batch, session.max_query_ms_per_batch)


def passed_limits(found: Mapping[str, Found], limits: BatchLimits, batch: int) -> dict[str, str]:
    """The error of every query that found more than it may, by query."""
    return {
        query: str(_error(own, limits.of(query), batch))
        for query, own in found.items()
        if limits.of(query).are_passed_by(own)
    }


def found_by_users(found: Mapping[str, Found], groups: Iterable[GroupPlan]) -> dict[str, Found]:
    """What queries found: a query that reads groups met all the pairs that were joined for them."""
    by_query = dict(found)
    for group in groups:
        joined = by_query.pop(group.id, Found())
        for user in group.users:
            by_query[user.query] = by_query.get(user.query, Found()) + Found(pairs=joined.pairs, ms=joined.ms)
    return by_query


def nodes_of(plan: SharedPlan, queries: set[str]) -> set[str]:
    """The steps that these queries take."""
    return {
        node.id for tree in plan.probing_trees for node in tree.walk() if any(leg.query in queries for leg in node.legs)
    }


def _error(found: Found, limits: QueryLimits, batch: int) -> LimitExceeded:
    if limits.results is not None and found.results > limits.results:
        return LimitExceeded(
            f"found more than {limits.results:,} results in batch {batch}: {found.results:,} when it was stopped",
            where=f"limit max_results_per_batch = {limits.results:,}",
            hint="narrow the join (a further key, a selection, a shorter time bound), or create it anew"
            " (CREATE OR REPLACE, replace=True) with a higher max_results_per_batch",
        )
    if limits.result_bytes is not None and found.result_bytes > limits.result_bytes:
        return LimitExceeded(
            f"answers of more than {limits.result_bytes:,} bytes in batch {batch}: {found.result_bytes:,} when it was"
            " stopped",
            where=f"limit max_result_bytes_per_batch = {limits.result_bytes:,}",
            hint="select shorter values or fewer rows; or let the session allow more (max_result_bytes_per_batch)",
        )
    if limits.ms is not None and found.ms > limits.ms:
        return LimitExceeded(
            f"took more than {limits.ms:,.0f} ms of work in batch {batch}: {found.ms:,.0f} when it was stopped",
            where=f"limit max_query_ms_per_batch = {limits.ms:,.0f}, all tasks together",
            hint="narrow the join (a further key, a selection, a shorter time bound), or let the session allow more"
            " (max_query_ms_per_batch)",
        )
    return LimitExceeded(
        f"found more than {limits.pairs:,} pairs of rows in batch {batch}: {found.pairs:,} when it was stopped",
        where=f"limit max_pairs_per_batch = {limits.pairs:,}, over all steps of the join",
        hint="join by a key with more values, or put a selection or time bound on the large side; or create it anew"
        " (CREATE OR REPLACE, replace=True) with a higher max_pairs_per_batch",
    )
