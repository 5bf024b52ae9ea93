"""A query that shares nothing: stores, indexes, probe trees and groups are all its own, as if it were a job of its own.

What sharing saves is measured against it. Everything shared is shared by store, and a store's name has its owner in it:
where that differs nothing is the same.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.query.join_query import JoinQuery


def with_own_stores(query: JoinQuery, owner: str) -> JoinQuery:
    """The same query over rows that are kept for `owner` alone."""
    return replace(query, relations=tuple(replace(relation, owner=owner) for relation in query.relations))
