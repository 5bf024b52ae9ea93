"""Up to where windows are closed, from the query alone: what the oracles wait by (see `dovetail.query.closing`)."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.query.closing import uppers_from
from dovetail.query.join_query import JoinQuery


def closed_until(query: JoinQuery, watermark_us_by_stream: Mapping[str, int | None]) -> int | None:
    """Windows of the query's groups that end at or before this are closed; None when none can be said to be."""
    if query.aggregation is None or query.aggregation.window_relation is None:
        return None
    limits = []
    for alias, upper_us in uppers_from(query, query.aggregation.window_relation).items():
        watermark_us = watermark_us_by_stream.get(query.relation(alias).stream)
        if upper_us is None or watermark_us is None:
            return None
        limits.append(watermark_us - upper_us)
    return min(limits)
