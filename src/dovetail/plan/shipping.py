"""Which rows travel to the partitions that keep them: the exchange of the papers, in place of references (S1, A10).

    a.k = b.k, a.m = c.m      rows of a are used by k and by m, each placed by its own key

    copies a partition        a row goes once to every partition that one of its keys sends it to, with a mark for each
                              of them (SASPAR); where both lie on one partition it travels and is kept once
    copies a key              a row goes once for each of its keys, whether they lie together or not (AJoin)

A row without any key, or with NULL in all of them, goes to one partition. Of the partitions that get a row exactly one
is its *home*: what reads rows other than through an index that is kept by key looks at home rows, so nobody sees a row
twice. The exchange decides where rows lie, and no more: every task can read every bucket, so no answer depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dovetail.plan.placement import UseName, use_of
from dovetail.plan.store_plan import IndexPlan, StorePlan


class Copies(Enum):
    """How often a row travels."""

    PARTITION = "partition"
    KEY = "key"


@dataclass(frozen=True)
class Shipping:
    """Rows are shipped; `copies` says how often.

    What selections say of a row is decided where it is read, and travels with it: a bit for each (query-sets). If
    `decides_again`, the partitions decide them again instead, wherever that is quick (S7).
    """

    copies: Copies = Copies.PARTITION
    decides_again: bool = True

    def parcels(self, store: StorePlan) -> tuple[tuple[IndexPlan, ...], ...]:
        """The indexes whose rows travel together: a row goes to a partition once for each parcel that wants it there.

        Indexes of one key that differ in their order are one use of the store. None: nothing of the store is shipped.
        """
        indexes = placed_indexes(store)
        if self.copies is Copies.PARTITION:
            return (indexes,) if indexes else ()
        by_use: dict[UseName, list[IndexPlan]] = {}
        for index in indexes:
            by_use.setdefault(use_of(store.id, index), []).append(index)
        return tuple(map(tuple, by_use.values()))


def placed_indexes(store: StorePlan) -> tuple[IndexPlan, ...]:
    """Those with a key, which says where their rows lie."""
    return tuple(index for index in store.indexes if index.keys)
