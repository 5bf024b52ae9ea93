"""Whom a part of the plan serves, by name: what joins rows for groups stands for all the queries that read these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.plan.shared_plan import SharedPlan


class ServedQueries:
    def __init__(self, plan: SharedPlan, name_by_query: Mapping[str, str]) -> None:
        self._name_by_query = name_by_query
        self._readers = {group.id: [user.query for user in group.users] for group in plan.groups}

    def names(self, takers: Iterable[str]) -> list[str]:
        """Sorted names of the queries behind these; what is no query, such as upkeep, keeps its id."""
        queries = {query for taker in takers for query in self._readers.get(taker, [taker])}
        return sorted({self._name_by_query.get(query, query) for query in queries})
