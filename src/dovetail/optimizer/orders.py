"""Probe orders and forms of queries, as passes hand them on."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.plan.live_query import LiveQuery

Orders = Mapping[tuple[str, str], tuple[str, ...]]
"""By query and start alias: the aliases in the order they are joined, the start first."""

Forms = Mapping[tuple[str, str], LiveQuery]
"""By query and start alias: the form of the query that probes an intermediate, where one does."""
