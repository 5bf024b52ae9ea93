"""What planners ask: the user's figures come first, then counted, estimated and assumed ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dovetail.query.expression import TRUE, Expression
from dovetail.stats.estimate import Estimate, Origin
from dovetail.stats.figure import Figure, Kind
from dovetail.stats.observed import ObservedStats
from dovetail.stats.selection_sample import SelectionRows, SelectionSample

ASSUMED_ROWS_IN_WINDOW = 100_000.0
ASSUMED_SELECTION = 0.5
ASSUMED_ROW_BYTES = 100.0
ASSUMED_KEY_MATCH = 1e-5

MATCH_KINDS = (Kind.MATCH, Kind.MATCH_SAMPLED, Kind.MATCH_AFTER_JOIN)
"""In the order of trust: partial results meet rows as their own history has it, not as two plain rows would."""


@dataclass(frozen=True)
class StatsCatalog:
    """What is known of the data. Users give what they know with the option `statistics`; the rest is counted.

    `rows_in_window` is by stream, `key_match` the share of pairs that match by «stream.column=stream.column» (sorted),
    `selection_share` by store and the selection's canonical text. `observed` and `row_bytes_by_store` are counted, not
    given.
    """

    rows_in_window: Mapping[str, float] = field(default_factory=dict)
    key_match: Mapping[str, float] = field(default_factory=dict)
    selection_share: Mapping[tuple[str, str], float] = field(default_factory=dict)
    observed: ObservedStats = field(default_factory=ObservedStats)
    row_bytes_by_store: Mapping[str, float] = field(default_factory=dict)

    def with_observed(
        self, observed: ObservedStats, row_bytes_by_store: Mapping[str, float] | None = None
    ) -> StatsCatalog:
        return replace(self, observed=observed, row_bytes_by_store=row_bytes_by_store or {})

    def row_bytes(self, store: str) -> Estimate:
        """What a stored row takes, indexes included."""
        counted = self.row_bytes_by_store.get(store)
        return Estimate(ASSUMED_ROW_BYTES, Origin.ASSUMED) if counted is None else Estimate(counted, Origin.EXACT)

    def rows(self, stream: str) -> Estimate:
        """Rows of the stream, wanted or not, that are as young as those its stores keep."""
        return self._known(self.rows_in_window.get(stream), ASSUMED_ROWS_IN_WINDOW, Figure(Kind.LIVE_ROWS, (stream,)))

    def batch_rows(self, stream: str) -> Estimate | None:
        return self.observed.estimate(Figure(Kind.BATCH_ROWS, (stream,)))

    def rows_per_s(self, stream: str) -> Estimate | None:
        """Of event time, late rows left out."""
        return self.observed.estimate(Figure(Kind.ROWS_PER_S, (stream,)))

    def late_share(self, stream: str) -> Estimate | None:
        return self.observed.estimate(Figure(Kind.LATE_SHARE, (stream,)))

    def stored_rows(self, store: str) -> Estimate | None:
        return self.observed.estimate(Figure(Kind.STORED_ROWS, (store,)))

    def selection(self, selection: Expression, store: str | None = None) -> Estimate:
        """The share of the store's rows that pass; a stream and its store have the same name unless it has windows."""
        if selection == TRUE:
            return Estimate(1.0, Origin.GIVEN)
        if store is None:
            return Estimate(ASSUMED_SELECTION, Origin.ASSUMED)
        name = (store, str(selection))
        return self._known(self.selection_share.get(name), ASSUMED_SELECTION, Figure(Kind.SELECTION, name))

    def union_share(self, store: str, selections: Iterable[Expression]) -> Estimate:
        """The share of the store's rows that at least one of the selections wants (Crd of AJoin's Eq. 1)."""
        shares = {str(selection): self.selection(selection, store) for selection in selections}
        return self._sample(store).union_share(shares)

    def selection_rows(self, store: str, selection: Expression) -> SelectionRows:
        """What `UnionRows` needs of one selection; for those who ask for very many unions."""
        share = self.selection(selection, store).value
        sample = self._sample(store)
        return (
            SelectionRows(share, sample.used, sample.used)
            if selection == TRUE
            else sample.rows_of(str(selection), share)
        )

    def _sample(self, store: str) -> SelectionSample:
        return self.observed.samples.get(store, SelectionSample())

    def match(self, edge: str) -> Estimate:
        """The probability that two rows whose times allow it have the edge's keys equal."""
        figures = [Figure(kind, (edge,)) for kind in MATCH_KINDS]
        figures.sort(key=lambda figure: not self.observed.is_fresh(figure))
        return self._known(self.key_match.get(edge), ASSUMED_KEY_MATCH, *figures)

    def step(self, node: str) -> Estimate | None:
        """Rows found per row that probes at this node of the running plan."""
        return self.observed.estimate(Figure(Kind.STEP, (node,)))

    def distinct(self, store: str, index: str) -> Estimate | None:
        """Distinct keys among the rows that the store holds (of the newest batches, if it holds very many)."""
        keys = self.observed.keys.get((store, index))
        return None if keys is None else keys.distinct(self.observed.first_live_batch.get(store, 0))

    def rows_by_group(self, store: str, index: str) -> tuple[float, ...]:
        """Rows of a batch per key group; empty if unknown."""
        keys = self.observed.keys.get((store, index))
        return () if keys is None else keys.rows_by_group

    def heavy_share_by_code(self, store: str, index: str) -> Mapping[int, float]:
        """Codes of frequent keys and the share of rows that each holds."""
        keys = self.observed.keys.get((store, index))
        return {} if keys is None else keys.heavy_share_by_code

    def _known(self, given: float | None, assumed: float, *figures: Figure) -> Estimate:
        if given is not None:
            return Estimate(given, Origin.GIVEN)
        for figure in figures:
            found = self.observed.estimate(figure)
            if found is not None:
                return found
        return Estimate(assumed, Origin.ASSUMED)


def edge_text(a_side: str, b_side: str) -> str:
    """The name of an edge in `key_match`.

    >>> edge_text("views.vid", "videos.vid")
    'videos.vid=views.vid'
    """
    return "=".join(sorted((a_side, b_side)))


def joint_edge_text(edges: Iterable[str]) -> str:
    """The name of several edges between the same rows that must all hold.

    >>> joint_edge_text(["a.y=b.y", "a.x=b.x"])
    'a.x=b.x and a.y=b.y'
    """
    return " and ".join(sorted(edges))
