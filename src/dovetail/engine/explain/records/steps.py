"""Records of how rows find each other: steps, the trees and paths they make, and what comes of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dovetail.engine.explain.records.stores import KeptUntil
from dovetail.stats.estimate import Estimate, Origin


class Purpose(Enum):
    """What rows take steps for. The last three are of semi joins: each left row is answered with its first partner."""

    PAIRS = "pairs"
    LONE = "rows without a partner"
    HAS_PARTNER = "rows with a partner"
    FINDS_EARLIER = "earlier rows that get a partner"
    HAD_NO_PARTNER = "earlier rows that had no partner before"


@dataclass(frozen=True)
class ExpectedRows:
    """A batch's, by the cost model; `basis` is the origin of the least known figure behind it."""

    probing_rows: float
    found_rows: float
    rows_per_probing_row: float | None
    basis: Origin


@dataclass(frozen=True)
class CountedRows:
    """Of the last batch: rows that looked something up at the step, and rows that they found."""

    looked_up: int
    found: int


@dataclass(frozen=True)
class KeyExplained:
    """`stored`, said of the rows that are looked up, equals `probing`, said of the rows so far."""

    stored: str
    probing: str


@dataclass(frozen=True)
class LookupExplained:
    """What is looked up and how: by `keys`, then in the order of `searched_by`; with neither, every row is tried."""

    name: str
    keys: tuple[KeyExplained, ...]
    searched_by: str | None


@dataclass(frozen=True)
class AnswerExplained:
    """Results that are complete here: of a query, or rows of the intermediate or of the groups `into`.

    Joined rows that are only aggregated are not built where one side can be `folded`; else `why_built` says why.
    `sql` is the selection as users wrote it.
    """

    query: str | None
    into: str | None
    selection: str | None
    sql: str | None
    folded: str | None
    why_built: str | None


@dataclass(frozen=True)
class StepExplained:
    """`member` is the one that the step adds; `maintains` are the intermediates whose upkeep takes the step, `keeps_up`
    their names.

    `last_batch` of None: it did not run by this step in this process, or nobody counts it.
    """

    step: str
    member: int
    store: str
    index: str
    probe_keys: tuple[str, ...]
    lookup: LookupExplained
    visibility: str
    queries: tuple[str, ...]
    maintains: tuple[str, ...]
    keeps_up: tuple[str, ...]
    last_batch: CountedRows | None
    expected: ExpectedRows
    observed_rows_per_probing_row: Estimate | None
    match: Estimate | None
    cost_ms: float
    answers: tuple[AnswerExplained, ...]
    steps: tuple[StepExplained, ...]


@dataclass(frozen=True)
class ProbeExplained:
    """`rows` of the store `start` take the steps: new ones, or others that are asked for their partners.

    Rows without a partner are `decided_by` a stream; `answers` are of queries over this stream alone.
    """

    start: str
    name: str
    queries: tuple[str, ...]
    maintains: tuple[str, ...]
    steps: tuple[StepExplained, ...]
    answers: tuple[AnswerExplained, ...]
    purpose: Purpose
    decided_by: KeptUntil | None
    rows: str


@dataclass(frozen=True)
class SharedStep:
    """A step as one query takes it. `share_ms` is what the query pays of the step's cost.

    `lookup` speaks of the query's aliases; `conditions` are what it tests where keys are equal.
    """

    step: StepExplained
    lookup: LookupExplained
    conditions: tuple[str, ...]
    shared_with: tuple[str, ...]
    share_ms: float


@dataclass(frozen=True)
class PathExplained:
    """How rows of the relation `start` of the query, new ones mostly, find their partners.

    `into`, `folded` and `why_built` speak of what is answered, as in `AnswerExplained`; `padded` is the relation that
    is NULL in the answers of rows without a partner.
    """

    start: str
    name: str
    store: str
    steps: tuple[SharedStep, ...]
    purpose: Purpose
    decided_by: KeptUntil | None
    padded: str | None
    rows: str
    into: str | None
    folded: str | None
    why_built: str | None
