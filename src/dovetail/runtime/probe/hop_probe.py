"""Probing all nodes of one hop in one partition: pairs are found by one pass of compiled code, for all queries at once.

    rows in flight  ->  pairs  ->  decided: keys, limits, residuals  ->  answers, and rows in flight to the next hop

What differs between queries (selection, time bounds, first batch) is a bit per leg. What only Python can do is done for
all who ask the same together, so that calls follow what is asked, not who asks it. Nodes whose pairs are found within
ranges, or whose joined rows need not be built, are left to `ProbeOperator`, one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.kernels.match.hand_on import sort_by_node
from dovetail.kernels.match.leg_bits import no_bits
from dovetail.kernels.match.match_hop import KEPT, LOOKS, NEAR, RowArrays, Segments, Stored
from dovetail.kernels.match.match_pieces import match_pieces
from dovetail.kernels.match.start_rows import Starts, start_rows
from dovetail.kernels.word_bits import WORD_BITS
from dovetail.lowering.flat_plan import FlatHop, FlatNode, FlatPlan
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.probe.decide_pairs import PairDecider
from dovetail.runtime.probe.emit_order import Taker
from dovetail.runtime.probe.frame import Frame
from dovetail.runtime.probe.hop_facts import hop_facts
from dovetail.runtime.probe.hop_pairs import HopPairs, VoidLegs, pairs_in_pieces
from dovetail.runtime.probe.hop_tables import HopTables
from dovetail.runtime.probe.open_stores import OpenStores
from dovetail.runtime.probe.partial import Partial
from dovetail.runtime.probe.pass_on import NextRows, SendOn
from dovetail.runtime.probe.probe_operator import ProbeOperator
from dovetail.runtime.probe.route_entries import EntryChoice, Part, Route
from dovetail.runtime.probe.rows_in_flight import RowsInFlight
from dovetail.runtime.report import StepCount, TaskReport, UnitWork
from dovetail.runtime.stopwatch import Stopwatch

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
RowsOfBucket = tuple[int, int, int]
"""A bucket by its ordinal, its first row, and the one behind the last."""
ROWS_AT_ONCE = 1 << 22
"""So many are in flight from new buckets at once: with hundreds of nodes a large batch would take all memory."""
SORTED_FROM_ROWS = 1 << 13
"""Rows that probe in the order of the codes read the entries one after the other: with many, that pays for sorting."""


@dataclass(frozen=True)
class Stretch:
    """Rows [begin, end) of those in flight are at `node`, and belong to one part of how its index is routed.

    No leg wants `unwanted` others, which look for nobody.
    """

    node: int
    part: Part
    begin: int
    end: int
    unwanted: int = 0


class HopProbe:
    """Whole rows go to `taker`, longer partial results to `send_on`; nodes that are probed alone to `alone`."""

    def __init__(
        self,
        task: BatchTask,
        opened: OpenStores,
        flat: FlatPlan,
        report: TaskReport,
        work: UnitWork,
        taker: Taker,
        send_on: SendOn,
        alone: ProbeOperator,
    ) -> None:
        number = work.hop
        self._task = task
        self._flat = flat
        self._number = number
        self._hop: FlatHop = flat.hops[number - 1]
        self._following = flat.hops[number] if number < len(flat.hops) else None
        self._snapshots = opened.snapshots
        self._tables = opened.tables(flat)
        self._report = report
        self._work = work
        self._taker = taker
        self._send_on = send_on
        self._alone = alone
        self._facts = hop_facts(task.plan, flat, number, task.timezone)
        self._void = VoidLegs(flat, self._hop, report)
        self._decider = PairDecider(task, flat, self._hop, self._facts, opened.snapshots, report, self._void)
        self._routes: list[Route | None] = [None] * len(flat.indexes)
        self._probed: dict[Part, tuple[I64, I64]] = {}

    def probe_new_rows(self, chunks: Mapping[str, Sequence[RowsOfBucket]]) -> None:
        """What new rows meet; those of a fill are stored ones, `chunks` by the store that is filled."""
        tables = self._tables
        starts: list[tuple[int, ...]] = []
        parts: list[Part] = []
        store_number = {store: number for number, store in enumerate(self._flat.stores)}
        for node in self._hop.nodes:
            buckets = self._buckets_to_start_from(node, chunks)
            if not buckets or self._is_void(node):
                continue
            snapshot, index = self._snapshots[node.stores[0]], node.node.step.start_index
            for part, choice in self._route(node.number).probing():
                with self._report.charging(self._queries_at([node.number])):
                    of_node = (node.number, store_number[node.stores[0]])
                    starts += [
                        (*of_node, *bucket, *tables.entries(snapshot, index, choice, bucket[0]).address)
                        for bucket in buckets
                    ]
                    parts += [part] * len(buckets)
        if not starts:
            return
        asked = Starts(*np.ascontiguousarray(np.array(starts, np.int64).T))
        places = self._places({node for node, *_ in starts}, is_start=True)
        for piece in _pieces(asked.end - asked.begin):
            own = Starts(*(column[piece] for column in asked))
            rows, ends, looked = start_rows(own, self._hop.arrays, tables.buckets(), places)
            self._probe_started(own.node, parts[piece], rows, ends, looked)

    def _probe_started(self, node_of_start: I64, parts: list[Part], rows: RowArrays, ends: I64, looked: I64) -> None:
        """Rows start after start; each start looked at so many entries."""
        begins = np.concatenate([[0], ends[:-1]])
        for part in set(parts):
            own = np.array([each is part for each in parts])
            self._count_probing(part, node_of_start[own], looked[own], (ends - begins)[own])
        stretches = [
            Stretch(node, part, begin, end, looks - (end - begin))
            for node, part, begin, end, looks in zip(
                node_of_start.tolist(), parts, begins.tolist(), ends.tolist(), looked.tolist(), strict=True
            )
            if begin < end
        ]
        in_flight = RowsInFlight(np.repeat(node_of_start, ends - begins), rows.codes, rows.words, rows.refs)
        self._probe(in_flight, stretches)

    def probe_rows(self, rows: RowsInFlight) -> None:
        """What rows meet that came from the hop before."""
        order, ends = sort_by_node(rows.nodes, len(self._hop.nodes))
        begins = np.concatenate([[0], ends[:-1]])
        stretches: list[Stretch] = []
        for node in np.flatnonzero(ends > begins).tolist():
            begin, end = int(begins[node]), int(ends[node])
            if end - begin >= SORTED_FROM_ROWS:
                own = order[begin:end]
                order[begin:end] = own[np.argsort(rows.codes[own])]
            if not self._route(node).splits:
                stretches.append(Stretch(node, Part.OWN, begin, end))
                continue
            own = order[begin:end].copy()
            for part, idx in self._route(node).parts_of(rows.codes[own]):
                count = len(own) if idx is None else len(idx)
                order[begin : begin + count] = own if idx is None else own[idx]
                stretches.append(Stretch(node, part, begin, begin + count))
                begin += count
        for part in Part:
            own = [each for each in stretches if each.part is part]
            counts = np.array([each.end - each.begin for each in own], np.int64)
            self._count_probing(part, np.array([each.node for each in own], np.int64), counts, counts)
        self._probe(rows.take(order), [each for each in stretches if each.begin < each.end])

    def _buckets_to_start_from(
        self, node: FlatNode, chunks: Mapping[str, Sequence[RowsOfBucket]]
    ) -> Sequence[RowsOfBucket]:
        if node.fill is not None:
            return chunks.get(node.fill, ())
        snapshot = self._snapshots[node.stores[0]]
        current = range(snapshot.current_from, len(snapshot.metas))
        return [(ordinal, 0, snapshot.metas[ordinal].rows) for ordinal in current]

    def _route(self, node: int) -> Route:
        """How the index that is probed at a node is spread over partitions."""
        number = self._hop.nodes[node].index
        found = self._routes[number]
        if found is None:
            found = self._routes[number] = self._alone.route(self._hop.nodes[node].node)
        return found

    def _queries_at(self, nodes: Iterable[int]) -> set[str]:
        return set().union(*(self._facts.queries_of_node[node] for node in nodes))

    def _is_void(self, node: FlatNode) -> bool:
        void = self._report.void_queries
        return bool(void) and self._facts.queries_of_node[node.number] <= void

    def _places(self, nodes: Collection[int], *, is_start: bool) -> npt.NDArray[np.int32]:
        """Where the bits of what the legs of these nodes ask lie; whoever asks what fails has failed."""
        asks_of_node = self._facts.start_asks_of_node if is_start else self._facts.asks_of_node

        def fail(ask: int, error: Exception) -> None:
            legs = (leg for node in nodes for leg in self._hop.nodes[node].legs)
            self._report.fail({leg.leg.query for leg in legs if ask == (leg.start_ask if is_start else leg.ask)}, error)

        return self._tables.places(set().union(*(asks_of_node[node] for node in nodes)), fail)

    def _count_probing(self, part: Part, nodes: I64, rows: I64, wanted: I64) -> None:
        self._work.probed_rows += int(rows[~self._facts.is_alone[nodes]].sum())
        nothing = np.zeros(len(self._hop.nodes), np.int64)
        probed, wanted_by_node = self._probed.setdefault(part, (nothing, nothing.copy()))
        np.add.at(probed, nodes, rows)
        np.add.at(wanted_by_node, nodes, wanted)

    def _probe(self, rows: RowsInFlight, stretches: list[Stretch]) -> None:
        counts = np.zeros((len(self._hop.nodes), 3), np.int64)
        together = [each for each in stretches if not self._facts.is_alone[each.node]]
        if together:
            self._probe_together(rows, together, counts)
        self._tell(counts)
        self._probed = {}
        for each in stretches:
            if self._facts.is_alone[each.node] and not self._is_void(self._hop.nodes[each.node]):
                self._probe_alone(rows, each)

    def _probe_together(self, rows: RowsInFlight, stretches: list[Stretch], counts: I64) -> None:
        tables = self._tables
        segments = self._segments(rows, stretches, tables)
        if len(segments.node) == 0:
            return
        active = set(segments.node.tolist())
        places = self._places(active, is_start=False)
        codes = tables.codes(set().union(*(self._facts.code_columns[node] for node in active)))
        stored = Stored(self._hop.arrays, tables.arrays(), tables.buckets(), places)
        flying = RowArrays(*(np.require(each, requirements=["C", "W"]) for each in (rows.codes, rows.words, rows.refs)))
        watch = Stopwatch()
        self._void.look()
        looked = counts[:, LOOKS].copy()
        for found in match_pieces(flying, segments, stored, self._void.masks, counts, self._task.max_pairs):
            looks, looked = counts[:, LOOKS] - looked, counts[:, LOOKS].copy()
            for pairs in pairs_in_pieces(rows, found, self._facts.rows_a_piece):
                self._decider.decide(pairs, looks, watch)
                self._decider.emit(pairs, self._taker)
                if self._following is not None:
                    self._next_rows(self._following).pass_on(pairs, codes)
                looks = np.zeros_like(looks)
                watch.lap()

    def _next_rows(self, following: FlatHop) -> NextRows:
        return NextRows(self._task, self._hop, following, self._facts, self._snapshots, self._report, self._send_on)

    def _segments(self, rows: RowsInFlight, stretches: list[Stretch], tables: HopTables) -> Segments:
        """The stretches with the tables that they look at; without those whose tables fail."""
        looking: list[tuple[Stretch, int, EntryChoice]] = []
        nodes_by_table: dict[tuple[int, EntryChoice], list[int]] = {}
        for each in stretches:
            index = self._hop.nodes[each.node].index
            route = self._route(each.node)
            for choice in route.stored(each.part, rows.codes[each.begin : each.end]):
                looking.append((each, index, choice))
                nodes_by_table.setdefault((index, choice), []).append(each.node)
        table_numbers = self._add_tables(nodes_by_table, tables)
        found = [
            (each.node, table_numbers[index, choice], each.begin, each.end)
            for each, index, choice in looking
            if (index, choice) in table_numbers
        ]
        return Segments(*np.ascontiguousarray(np.array(found, np.int64).reshape(-1, 4).T))

    def _add_tables(
        self, nodes_by_table: Mapping[tuple[int, EntryChoice], list[int]], tables: HopTables
    ) -> dict[tuple[int, EntryChoice], int]:
        """By index and choice the number of a table, with those buckets that some of its nodes may see."""
        numbers: dict[tuple[int, EntryChoice], int] = {}
        arrays = self._hop.arrays
        for (number, choice), nodes in nodes_by_table.items():
            store, index = self._flat.indexes[number]
            snapshot = self._snapshots[store]
            first, before = arrays.first_batch[nodes].min(), arrays.before_batch[nodes].max()
            last = len(snapshot.metas) if arrays.up_to_now[nodes].any() else snapshot.current_from
            ordinals = [
                ordinal
                for ordinal, meta in enumerate(snapshot.metas[:last])
                if meta.lower_batch >= first and meta.upper_batch < before
            ]
            with self._report.charging(self._queries_at(nodes)):
                numbers[number, choice] = tables.add(snapshot, index, choice, ordinals)
        return numbers

    def _tell(self, counts: I64) -> None:
        """What was found at a node stands with the first part of its rows."""
        self._work.pairs += int(counts[:, NEAR].sum())
        is_told = self._facts.is_alone | ~self._facts.is_counted
        for part, (probed, wanted) in self._probed.items():
            for node in np.flatnonzero((probed > 0) & ~self._facts.is_alone & self._facts.is_counted).tolist():
                name, copies = self._hop.nodes[node].node.id, self._route(node).copies[part]
                near, kept = (0, 0) if is_told[node] else (int(counts[node, NEAR]), int(counts[node, KEPT]))
                is_told[node] = True
                self._report.steps.append(
                    StepCount(name, self._number, int(probed[node]), kept, int(wanted[node]), near, copies)
                )

    def _probe_alone(self, rows: RowsInFlight, stretch: Stretch) -> None:
        """Its rows as `ProbeOperator` wants them: in the order of the codes, a bit for every leg of the whole node."""
        node = self._hop.nodes[stretch.node]
        order = np.argsort(rows.codes[stretch.begin : stretch.end], kind="stable") + stretch.begin
        bits = no_bits(len(node.node.legs), len(order))
        for leg in node.legs:
            word, bit = divmod(leg.place, WORD_BITS)
            bits[word] |= ((rows.words[order] >> np.uint64(leg.bit)) & np.uint64(1)) << np.uint64(bit)
        frame = Frame(node.stores, tuple(refs[order] for refs in rows.refs))

        codes = self._tables.codes(self._facts.code_columns[node.number])

        def send_on(joined: Frame, bits: U64) -> None:
            if self._following is not None:
                self._next_rows(self._following).pass_on(_found_alone(node, joined, bits), codes)

        partial = Partial(node.node.id, rows.codes[order], frame, bits)
        self._alone.probe(node.node, partial, send_on, part=stretch.part, unwanted_rows=stretch.unwanted)


def _pieces(sizes: I64) -> Iterator[slice]:
    """Neighbours of at most `ROWS_AT_ONCE` together, or one alone that has more."""
    ends = np.cumsum(sizes)
    begin, done = 0, 0
    while begin < len(sizes):
        end = max(int(np.searchsorted(ends, done + ROWS_AT_ONCE, side="right")), begin + 1)
        yield slice(begin, end)
        begin, done = end, int(ends[end - 1])


def _found_alone(node: FlatNode, joined: Frame, bits: U64) -> HopPairs:
    """Joined rows of one node as pairs of a hop, with a bit for each leg of the flat node."""
    words = np.zeros(len(joined), np.uint64)
    for leg in node.legs:
        word, bit = divmod(leg.place, WORD_BITS)
        words |= ((bits[word] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(leg.bit)
    *members, stored = joined.refs
    nodes, refs = np.full(len(joined), node.number), np.array(members, np.uint64)
    rows = RowsInFlight(nodes, np.zeros(len(joined), np.uint64), words, refs)
    return HopPairs(rows, np.arange(len(joined), dtype=np.uint32), stored, words, nodes)
