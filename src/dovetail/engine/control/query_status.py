"""What a query is doing, as one record: what the API, SHOW QUERIES, REST and the client say is said here."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.engine.backfill.record import BackfillStatus


@dataclass(frozen=True)
class QueryStatus:
    """What a query is doing. `state` is pending, running, quarantined or dropped.

    `complete_from` is the first batch all of whose rows the answers cover, what a backfill brought included, and
    `complete_from_text` what that means for this kind of query; batches are None while pending. `in_effect`: no change
    of the query waits for a batch; `committed_batch` is the newest one of all queries.
    `growing_streams` are the streams whose rows the query keeps for ever, because no time bound lets them go;
    `growing_groups` what it keeps for ever of its groups, because no window lets them go.
    `delivered_batch` is the batch up to which the sink has all answers, None without a sink; `sink_error` what keeps
    it from more.
    `failed_batch` is the batch that put it into quarantine; `error` says why, and what to do.
    `backfill` is None for a query that has none, and before it takes effect.
    """

    id: str
    name: str
    sql: str
    state: str
    error: str | None
    in_effect: bool
    created_batch: int | None
    complete_from: int | None
    complete_from_text: str | None
    changed_batch: int | None
    dropped_batch: int | None
    failed_batch: int | None
    total_rows: int
    committed_batch: int
    growing_streams: tuple[str, ...]
    growing_groups: tuple[str, ...]
    delivered_batch: int | None
    sink_error: str | None
    backfill: BackfillStatus | None
