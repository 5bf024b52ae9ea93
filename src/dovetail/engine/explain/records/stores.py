"""Records of what is kept: stores, joins that are kept as stores, groups."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.stats.estimate import Estimate


@dataclass(frozen=True)
class RowFigures:
    """`a_second` is a second of event time, `a_clock_second` one of the clock, over the last batches of this process.

    `live` are rows of the stream, wanted or not, that are as young as what the store keeps.
    """

    a_batch: Estimate | None
    a_second: Estimate | None
    a_clock_second: Estimate | None
    late_share: Estimate | None
    live: Estimate | None
    stored: Estimate | None


@dataclass(frozen=True)
class RoutingExplained:
    """How the index is spread over partitions, and why; `subgroups` of None: by hash. Then how many keys are split."""

    routing: str
    because: str
    subgroups: int | None
    split_stored: int
    split_probing: int


@dataclass(frozen=True)
class IndexExplained:
    """`keys` and `order` as users wrote them; `order` of None: rows of a key are in no order that anybody searches."""

    index: str
    keys: tuple[str, ...]
    order: str | None
    distinct_keys: Estimate | None
    frequent_keys: int | None
    largest_key_share: float | None
    routing: RoutingExplained


@dataclass(frozen=True)
class SelectionExplained:
    """`sql` is as users wrote it, `selection` the canonical text by which statistics know it."""

    selection: str
    sql: str
    passes: Estimate


@dataclass(frozen=True)
class KeptUntil:
    """Until the stream's watermark is `after_s` seconds past the row's time."""

    stream: str
    after_s: float


@dataclass(frozen=True)
class WindowExplained:
    """Windows of `size_s` seconds, one every `slide_s`."""

    size_s: float
    slide_s: float


@dataclass(frozen=True)
class StoreExplained:
    """`retention` of None: for ever. `queries` probe with its new rows, or keep it.

    Of a stream in windows there is a row for each window that a row is in. `bad_rows` came and cannot be used;
    `last_bad_row` says why one of them cannot.
    """

    store: str
    name: str
    window: WindowExplained | None
    is_intermediate: bool
    columns: tuple[str, ...]
    keeps_all_rows: bool
    retention: tuple[KeptUntil, ...] | None
    rows: RowFigures
    stored_bytes: int
    indexes: tuple[IndexExplained, ...]
    selections: tuple[SelectionExplained, ...]
    queries: tuple[str, ...]
    bad_rows: int = 0
    last_bad_row: str | None = None


@dataclass(frozen=True)
class IntermediateUser:
    """New rows of `start` probe the intermediate for the query; while they cannot, `waits_because` says why."""

    query: str
    start: str
    probes_now: bool
    waits_because: str | None


@dataclass(frozen=True)
class IntermediateExplained:
    """`upkeep_ms` is what writing its rows costs a batch, the steps that find them left out."""

    store: str
    name: str
    members: tuple[str, ...]
    joins_rows_from_batch: int
    users: tuple[IntermediateUser, ...]
    expected_rows: float
    expected_bytes: float
    upkeep_ms: float
    observed_rows: Estimate | None
    observed_bytes: int


@dataclass(frozen=True)
class GroupsExplained:
    """Partial groups that are kept for `queries`, by `keys`; `pane_s` are the seconds of a pane, None without windows.

    Groups without a window are kept for ever. `partial_columns` are what is folded, `details` the tables of distinct
    values and of sketches; `keeps` says both in SQL.
    """

    store: str
    keys: tuple[str, ...]
    partial_columns: tuple[str, ...]
    details: tuple[str, ...]
    keeps: tuple[str, ...]
    pane_s: float | None
    is_bounded: bool
    stored_rows: int
    stored_bytes: int
    queries: tuple[str, ...]


@dataclass(frozen=True)
class SharedStore:
    """A store that a query uses, and who else does."""

    store: StoreExplained
    shared_with: tuple[str, ...]
