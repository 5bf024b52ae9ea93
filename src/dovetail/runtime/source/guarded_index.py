"""Indexes that buckets lack because their keys fail on some row: made in memory, of the rows that their users want.

Who uses an index is a matter of the plan, so such an index is one of some selections, and never written.
"""

from __future__ import annotations

from collections.abc import Callable, Set

import numpy as np
import numpy.typing as npt

from dovetail.plan.affected_queries import queries_of_index, selections_of_queries
from dovetail.plan.query_limits import BatchLimits
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import IndexPlan
from dovetail.query.expression import Expression
from dovetail.runtime.report import TaskReport
from dovetail.runtime.source.guarded_key import GuardedKey
from dovetail.store.bucket_file import BucketIndex, BucketMeta

Mask = npt.NDArray[np.bool_]
PassedBy = Callable[[Set[Expression]], Mask]


class IndexGuard:
    """For one task: users that a key fails for go to its report."""

    def __init__(self, plan: SharedPlan, limits: BatchLimits, report: TaskReport) -> None:
        self._plan = plan
        self._longest_ms = limits.longest_ms
        self._report = report
        self._complete_from = dict(plan.complete_from_by_query)

    def users(self, store: str, index: IndexPlan, meta: BucketMeta) -> set[str]:
        """Those that may use rows of the bucket."""
        queries = queries_of_index(self._plan, store, index) - self._report.void_queries
        return {query for query in queries if self._complete_from[query] <= meta.lower_batch}

    def made(
        self,
        store: str,
        index: IndexPlan,
        meta: BucketMeta,
        passed_by: PassedBy,
        failure: Exception,
        make: Callable[[Mask], BucketIndex],
    ) -> tuple[BucketIndex, frozenset[Expression]]:
        """And of whose selections it is."""
        users = self.users(store, index, meta)
        guarded = GuardedKey(self._plan, store, meta.home_rows, passed_by, self._report, self._longest_ms)
        found = guarded.made(users, failure, make)
        wanted = selections_of_queries(self._plan, store, users - self._report.void_queries)
        if found is None:
            return _nothing(index), frozenset()
        return found[0], frozenset(wanted)


def _nothing(index: IndexPlan) -> BucketIndex:
    orders = None if index.order is None else np.zeros(0, np.int64)
    return BucketIndex(np.zeros(0, np.uint64), np.zeros(0, np.uint32), orders)
