"""What `complete_from` means for a query, in one sentence: it differs with what the query answers.

A query that takes effect at batch b with `complete_from` c answers what is found in b or later, in rows of c or later.
"""

from __future__ import annotations

from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import JoinQuery


def complete_from_text(query: JoinQuery, first_batch: int, complete_from: int, *, is_backfilled: bool = False) -> str:
    """`first_batch` is the one with which the query took effect."""
    groups = query.aggregation
    if is_backfilled or (first_batch, complete_from) == (0, 0):
        if groups is None:
            return "complete: it answers what batch SQL finds in all rows since the first batch"
        windows = "each window counts all its rows" if groups.is_windowed else "groups count all rows"
        return f"complete: {windows} since the first batch"
    found = _found(query, first_batch, complete_from)
    if groups is None:
        text = f"it answers {found}"
    elif groups.is_windowed:
        whole = f"windows that begin after the newest row from before batch {first_batch} are whole"
        text = f"{whole}, earlier ones count only {found}"
    else:
        text = f"groups count {found}"
    return f"begins with batch {first_batch}: {text}"


def _found(query: JoinQuery, first_batch: int, complete_from: int) -> str:
    """Which joined rows those are, of a query that came later than some rows."""
    if len(query.relations) == 1:
        return f"rows of batch {first_batch} or later"
    if query.kind is JoinKind.SEMI:
        what = f"rows that find their first partner in batch {first_batch} or later"
    elif query.lone_aliases:
        pairs = "pairs found and " if query.kind.answers_pairs else ""
        what = f"{pairs}rows that turn out to have no partner in batch {first_batch} or later"
    elif complete_from == first_batch:
        return f"joins of rows that all came in batch {first_batch} or later"
    else:
        what = f"joins whose newest row came in batch {first_batch} or later"
    since = "with any rows from before" if complete_from == 0 else f"among rows of batch {complete_from} or later"
    return f"{what}, {since}"
