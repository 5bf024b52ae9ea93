"""What a query is expected to take, said when it is created: each figure with where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dovetail.core.errors import LimitExceeded
from dovetail.core.text_tree import TextTree
from dovetail.engine.options.limits import Limits
from dovetail.stats.estimate import Estimate, Origin, number_text

_BYTE_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class QueryEstimate:
    """Figures of a query next to those that run; None is unknown.

    `added_rows` and `added_bytes` would be stored only because of it: what others keep anyway is not counted, and
    neither are `growing_streams` and `growing_groups`, which it would keep for ever. Costs are milliseconds of work a
    batch by greedy probe orders: its steps if it were alone, its part of them when each is shared with whoever takes
    it already, and building its answers, which nobody shares.
    """

    added_rows: Estimate | None
    added_bytes: Estimate | None
    growing_streams: tuple[str, ...]
    growing_groups: tuple[str, ...]
    results_a_batch: Estimate
    alone_ms: Estimate
    share_ms: Estimate
    answers_ms: Estimate

    def to_json(self) -> dict[str, Any]:
        figures = {name: _figure(value) for name, value in vars(self).items() if not isinstance(value, tuple)}
        return figures | {"growing_streams": list(self.growing_streams), "growing_groups": list(self.growing_groups)}

    def text_tree(self) -> TextTree:
        kept = (*self.growing_streams, *self.growing_groups)
        growing = f"; keeps {', '.join(kept)} for ever" if kept else ""
        rows = "unknown" if self.added_rows is None else str(self.added_rows)
        lines = (
            f"would store {bytes_text(self.added_bytes)} more, rows: {rows}{growing}",
            f"results a batch: {self.results_a_batch}",
            f"cost a batch in ms: alone {self.alone_ms}, shared {self.share_ms}, answers {self.answers_ms}",
        )
        return TextTree("estimate", tuple(map(TextTree, lines)))

    def __str__(self) -> str:
        return str(self.text_tree())


def check_estimate(name: str, estimate: QueryEstimate, limits: Limits) -> None:
    """Refuse what is expected to pass a limit. Figures that are unknown or only assumed refuse nothing."""
    stored = estimate.added_bytes
    if limits.max_query_bytes is not None and stored is not None and _passes(stored, limits.max_query_bytes):
        raise LimitExceeded(
            f"query {name!r} would store about {bytes_text(stored)}; limit {byte_count_text(limits.max_query_bytes)}",
            where="limit max_query_bytes, of what is stored only because of this query",
            hint="shorten its time bounds, select fewer rows, or ask for a higher limit",
        )
    cost = estimate.share_ms.value + estimate.answers_ms.value
    is_known = Origin.ASSUMED not in (estimate.share_ms.origin, estimate.answers_ms.origin)
    if limits.max_query_cost_ms is not None and is_known and cost > limits.max_query_cost_ms:
        raise LimitExceeded(
            f"query {name!r} would take about {number_text(cost)} ms of work a batch;"
            f" limit {number_text(limits.max_query_cost_ms)} ms",
            where="limit max_query_cost_ms, of its share of shared steps and its answers",
            hint="select fewer rows, join by a key with more values, or ask for a higher limit",
        )


def _passes(estimate: Estimate, limit: float) -> bool:
    return estimate.origin is not Origin.ASSUMED and estimate.value > limit


def bytes_text(size: Estimate | None) -> str:
    """A size and where it comes from.

    >>> bytes_text(Estimate(3.2e9, Origin.EXACT)), bytes_text(None)
    ('3.2 GB (counted)', 'an unknown number of bytes')
    """
    return "an unknown number of bytes" if size is None else f"{byte_count_text(size.value)} ({size.origin.value})"


def byte_count_text(count: float) -> str:
    unit = 0
    while count >= 1000 and unit < len(_BYTE_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.3g} {_BYTE_UNITS[unit]}"


def _figure(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "origin": estimate.origin.value, "relative_error": estimate.relative_error}
