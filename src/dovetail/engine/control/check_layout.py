"""What the join-matrix layout takes, and that a checkpoint keeps the layout that it began with."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.core.errors import QueryError, SessionError
from dovetail.engine.options import BICLIQUE, MATRIX
from dovetail.plan.live_query import store_of
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import JoinQuery
from dovetail.store.bucket_file import BucketMeta

_HINT = f"use a session with layout={BICLIQUE!r}, on a checkpoint folder of its own"


def check_checkpoint(layout: str, partitions: int, buckets: Iterable[BucketMeta]) -> None:
    """Rows lie where the layout put them: another one, or another number of cells, would look elsewhere."""
    for meta in buckets:
        if layout == BICLIQUE and meta.cell is not None:
            raise SessionError(
                f"this checkpoint was made with layout {MATRIX!r} and {meta.cell.total} partitions",
                hint=f"use layout={MATRIX!r} and partitions={meta.cell.total}, or an empty checkpoint folder",
            )
        if layout == MATRIX and (meta.cell is None or meta.cell.total != partitions):
            made = f"layout {BICLIQUE!r}" if meta.cell is None else f"{meta.cell.total} partitions"
            raise SessionError(
                f"this checkpoint was made with {made}, not as a join-matrix of {partitions} cells",
                hint="start a join-matrix with an empty checkpoint folder, and keep its partitions",
            )


def check_query(query: JoinQuery, others: Iterable[JoinQuery], buckets: Iterable[BucketMeta]) -> None:
    """A matrix has two sides, and every row lies where its side says."""
    pair = {store_of(relation) for relation in query.relations}
    is_plain = query.aggregation is None and query.kind is JoinKind.INNER
    if len(query.relations) != 2 or len(pair) != 2 or not is_plain:
        raise QueryError(
            "a join-matrix answers pairs of rows of two different streams, without groups or aggregates, and no rows"
            " without a partner; this query does more",
            hint=_HINT,
        )
    known = {store_of(relation) for other in others for relation in other.relations} | {meta.store for meta in buckets}
    if not known <= pair:
        raise QueryError(
            f"this join-matrix has the sides {' and '.join(sorted(known))}, not {' and '.join(sorted(pair))}",
            hint=_HINT,
        )
