"""How much a query may find, keep and cost, and how long a silent stream is waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dovetail.core.errors import SessionError
from dovetail.engine.options.option import option
from dovetail.query.durations import DurationError, parse_duration

_KINDS = {
    "storage_budget": "a number of bytes",
    "max_results_per_batch": "a number of results",
    "max_pairs_per_batch": "a number of pairs",
    "max_result_bytes_per_batch": "a number of bytes",
    "max_query_ms_per_batch": "a number of milliseconds",
    "max_query_bytes": "a number of bytes",
    "max_query_cost_ms": "a number of milliseconds",
}


@dataclass(frozen=True)
class Limits:
    """What bounds queries that choose nothing themselves (docs/limits.md)."""

    storage_budget: int | None = option(
        None, "bytes; where it is set, queries that keep rows for ever are refused, and joins are kept within it"
    )
    max_results_per_batch: int | None = option(
        100_000_000, "answers of a query in a batch; one that finds more is quarantined ([limits](limits.md))"
    )
    max_pairs_per_batch: int | None = option(
        100_000_000, "rows that meet for a query at any step in a batch; the same ([limits](limits.md))"
    )
    max_result_bytes_per_batch: int | None = option(
        8 << 30,
        "bytes of a query's answers in a batch, and of new groups while they are made; the same ([limits](limits.md))",
    )
    max_query_ms_per_batch: float | None = option(
        600_000.0, "milliseconds of work for a query in a batch, all tasks together; the same ([limits](limits.md))"
    )
    max_query_bytes: int | None = option(
        None, "bytes stored only because of one query: refused if expected, quarantined if it comes to them"
    )
    max_query_cost_ms: float | None = option(None, "work a batch for one query: refused if expected")
    idle_timeout: str | None = option(
        None,
        "e.g. `10 minutes`: a stream without rows for so long holds back no other's state"
        " ([guarantees](guarantees.md))",
    )

    def __post_init__(self) -> None:
        for name in _KINDS:
            _check_limit(name, getattr(self, name))
        _ = self.idle_timeout_s

    @staticmethod
    def none() -> Limits:
        return Limits(
            max_results_per_batch=None,
            max_pairs_per_batch=None,
            max_result_bytes_per_batch=None,
            max_query_ms_per_batch=None,
        )

    @property
    def idle_timeout_s(self) -> float | None:
        if self.idle_timeout is None:
            return None
        try:
            timeout_us = parse_duration(str(self.idle_timeout))
        except DurationError as error:
            raise SessionError(f"idle_timeout: {error}", hint=error.hint) from None
        if timeout_us <= 0:
            raise SessionError(f"idle_timeout is {self.idle_timeout!r}", hint="use e.g. '10 minutes', or None")
        return timeout_us / 1e6


def _check_limit(name: str, value: Any) -> None:
    if value is not None and (type(value) not in (int, float) or not value > 0):
        raise SessionError(f"{name} is {value!r}", hint=f"use {_KINDS[name]}, or None")
