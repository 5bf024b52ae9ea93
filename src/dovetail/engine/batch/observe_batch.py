"""From what tasks counted to figures with names: what one finished batch says of streams, selections and joins.

The chance that two rows meet needs both what was found and what could have been: pairs of equal key, over probing rows
times the stored rows that time bounds let each of them see. The latter is computed here from the buckets' time ranges,
as if times lay evenly within a bucket; so the figure counts as estimated where a step has bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from dovetail.engine.batch.observe_key_groups import key_groups_seen
from dovetail.engine.state import EngineState
from dovetail.kernels.select.select_rows import Mask, spread_rows, unpack_sample
from dovetail.plan.probe_tree import ProbeNode, ProbeTree, member_name
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import ROW, StorePlan
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import rename_relations
from dovetail.query.stream import Stream
from dovetail.runtime.report import QuerySets, StepCount, TaskReport
from dovetail.stats.catalog import edge_text, joint_edge_text
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.key_sketch import KeySketch
from dovetail.stats.key_stats import KeysSeen
from dovetail.stats.observed import BatchSeen, IndexName
from dovetail.stats.selection_sample import SAMPLED_ROWS_A_BATCH, RowsSampled
from dovetail.store.bucket_file import BucketMeta, by_store

EVEN_TIMES_ERROR = 0.25
"""What the assumption of even times within a bucket may cost; batches are rarely more uneven than that."""

_POINTS_A_BUCKET = 8
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TimeSpread:
    """The buckets of a list that have event times, as arrays, one entry a bucket."""

    begins: F64
    ends: F64
    rows: F64

    @staticmethod
    def of(metas: Iterable[BucketMeta]) -> TimeSpread:
        timed = [meta for meta in metas if meta.min_time_us is not None]
        # Microseconds are whole: a bucket of one moment is one microsecond long.
        return TimeSpread(
            np.array([meta.min_time_us for meta in timed], np.float64),
            np.array([meta.max_time_us for meta in timed], np.float64) + 1,
            np.array([meta.home_rows for meta in timed], np.float64),
        )

    @cached_property
    def rows_per_us(self) -> F64:
        return self.rows / (self.ends - self.begins)

    @cached_property
    def points(self) -> F64:
        """Moments that stand for the rows, equally many in each bucket."""
        spacing = np.linspace(0, 1, _POINTS_A_BUCKET)[:, None]
        return (self.begins + spacing * (self.ends - 1 - self.begins)).ravel()

    @cached_property
    def weights(self) -> F64:
        """How much each of the `points` counts; together 1."""
        return np.tile(self.rows / (self.rows.sum() * _POINTS_A_BUCKET), _POINTS_A_BUCKET)


@dataclass(frozen=True)
class Batch:
    """A finished batch: the state it began with, the one it left, and what its tasks told."""

    before: EngineState
    after: EngineState
    plan: SharedPlan
    streams: Mapping[str, Stream]
    report: TaskReport
    written: tuple[BucketMeta, ...]

    @cached_property
    def complete_from(self) -> dict[str, int]:
        return dict(self.plan.complete_from_by_query)

    @cached_property
    def earlier_by_store(self) -> dict[str, list[BucketMeta]]:
        return by_store(self.before.buckets)

    @cached_property
    def written_by_store(self) -> dict[str, list[BucketMeta]]:
        return by_store(self.written)

    @cached_property
    def spread_by_stores(self) -> dict[tuple[str, bool], TimeSpread]:
        """By store and whether the batch's own buckets are among them; filled as it is asked for."""
        return {}

    def spread(self, store: str, *, is_up_to_now: bool, first_batch: int) -> TimeSpread:
        """The buckets of `store` that a probe sees; those from before `first_batch` it does not."""
        metas = self.visible(store, is_up_to_now=is_up_to_now)
        if any(meta.lower_batch < first_batch for meta in metas):
            return TimeSpread.of(meta for meta in metas if meta.lower_batch >= first_batch)
        known = self.spread_by_stores.get((store, is_up_to_now))
        if known is None:
            known = self.spread_by_stores[store, is_up_to_now] = TimeSpread.of(metas)
        return known

    def visible(self, store: str, *, is_up_to_now: bool) -> list[BucketMeta]:
        earlier = self.earlier_by_store.get(store, [])
        return earlier + self.written_by_store.get(store, []) if is_up_to_now else earlier

    @cached_property
    def written_spread_by_store(self) -> dict[str, TimeSpread]:
        return {store: TimeSpread.of(metas) for store, metas in self.written_by_store.items()}

    def of_streams(self) -> list[StorePlan]:
        """The stores that hold rows of one stream, as they came or by window."""
        return [store for store in self.plan.stores if store.stream in self.streams]


def observe_batch(batch: Batch) -> BatchSeen:
    tallies: dict[Figure, Tally] = {}
    for figure, tally in (
        *_stream_tallies(batch),
        *_store_tallies(batch),
        *_step_tallies(batch),
        *_sample_tallies(batch),
    ):
        tallies[figure] = tallies[figure] + tally if figure in tallies else tally
    live = by_store(batch.after.buckets)
    first_live = {store: min(meta.lower_batch for meta in metas) for store, metas in live.items()}
    return BatchSeen(
        batch.after.batch,
        tallies,
        _keys_seen(batch.report),
        first_live,
        _rows_sampled(batch),
        key_groups_seen(batch.report, batch.after.batch),
    )


def _stream_tallies(batch: Batch) -> Iterator[tuple[Figure, Tally]]:
    for name in batch.streams:
        counts = [count for count in batch.report.streams if count.stream == name]
        rows, late_rows = sum(count.rows for count in counts), sum(count.late_rows for count in counts)
        if not rows:
            continue
        yield Figure(Kind.BATCH_ROWS, (name,)), Tally(rows, 1)
        yield Figure(Kind.LATE_SHARE, (name,)), Tally(late_rows, rows)
        yield Figure(Kind.ROWS_PER_S, (name,)), Tally(rows - late_rows, _seconds_gained(batch, name))


def _seconds_gained(batch: Batch, stream: str) -> float:
    """By how much the stream's newest event time grew; the first batch gains all that it spans."""
    newest_us = batch.after.max_time_us_by_stream.get(stream)
    oldest_us = batch.before.max_time_us_by_stream.get(stream)
    if oldest_us is None:
        stores = [store.id for store in batch.of_streams() if store.stream == stream]
        times_us = [meta.min_time_us for store in stores for meta in batch.written_by_store.get(store, [])]
        oldest_us = min((time_us for time_us in times_us if time_us is not None), default=None)
    if newest_us is None or oldest_us is None:
        return 0.0
    return max(newest_us - oldest_us, 0) / 1e6


def _store_tallies(batch: Batch) -> Iterator[tuple[Figure, Tally]]:
    live = by_store(batch.after.buckets)
    for count in batch.report.selections:
        yield Figure(Kind.SELECTION, (count.store, count.selection)), Tally(count.passed_rows, count.rows)
    live_by_stream: dict[str, Tally] = {}
    for store in batch.plan.stores:
        stored_rows = sum(meta.home_rows for meta in live.get(store.id, []))
        yield Figure(Kind.STORED_ROWS, (store.id,)), Tally(stored_rows, 1)
        kept_share = _kept_share(batch, store)
        if store.stream in batch.streams and kept_share:
            copies = store.hop_window.size_us / store.hop_window.slide_us if store.hop_window else 1.0
            # The share kept now stands for the share kept of older rows too.
            error = 2 * math.sqrt((1 - kept_share) / stored_rows) if stored_rows else 0.0
            live_rows = Tally(stored_rows / kept_share / copies, 1, error)
            live_by_stream[store.stream] = max(
                live_rows, live_by_stream.get(store.stream, live_rows), key=lambda tally: tally.part
            )
    for stream, live_rows in live_by_stream.items():
        yield Figure(Kind.LIVE_ROWS, (stream,)), live_rows


def _kept_share(batch: Batch, store: StorePlan) -> float:
    """Of the rows that came, those that some query wants; 0 if that is not known."""
    if store.keeps_all:
        return 1.0
    came_by_selection: Counter[str] = Counter()
    for count in batch.report.selections:
        if count.store == store.id:
            came_by_selection[count.selection] += count.rows
    # A selection that failed in some task has not counted the rows there.
    came = max(came_by_selection.values(), default=0)
    return min(sum(meta.home_rows for meta in batch.written_by_store.get(store.id, [])) / came, 1.0) if came else 0.0


def _step_tallies(batch: Batch) -> Iterator[tuple[Figure, Tally]]:
    counts_by_node: dict[str, list[StepCount]] = {}
    for count in batch.report.steps:
        counts_by_node.setdefault(count.node, []).append(count)
    stream_by_store = {store.id: store.stream for store in batch.of_streams()}
    for tree in batch.plan.trees:
        for node, path in _nodes(tree.children, (tree.start,)):
            counts = counts_by_node.get(node.id, [])
            if not counts:
                continue
            matched, probed = sum(c.matched_rows for c in counts), sum(c.probe_rows / c.copies for c in counts)
            yield Figure(Kind.STEP, (node.id,)), Tally(matched, probed)
            # Where ranges narrow the search, nobody knows how many pairs have equal keys.
            is_by_keys_alone = bool(node.step.index.keys) and node.step.index.order is None
            if is_by_keys_alone and {*path, node.step.target} <= set(stream_by_store):
                kind = Kind.MATCH if node.member == 1 else Kind.MATCH_AFTER_JOIN
                edge = edge_of_step(node, [stream_by_store[store] for store in path], stream_by_store[node.step.target])
                yield Figure(kind, (edge,)), _match_tally(batch, tree, node, counts)


def _sample_tallies(batch: Batch) -> Iterator[tuple[Figure, Tally]]:
    for sample in batch.report.samples:
        yield Figure(Kind.MATCH_SAMPLED, (sample.edge,)), Tally(sample.matches, sample.pairs, sample.relative_error)


def _nodes(children: Iterable[ProbeNode], path: tuple[str, ...]) -> Iterator[tuple[ProbeNode, tuple[str, ...]]]:
    """Every node and the stores of the members that probe there."""
    for node in children:
        yield node, path
        yield from _nodes(node.children, (*path, node.step.target))


def edge_of_step(node: ProbeNode, member_streams: list[str], target_stream: str) -> str:
    """The name of the edges by which rows meet at this node, as planners name them."""
    names = {member_name(member): stream for member, stream in enumerate(member_streams)}
    return joint_edge_text(
        edge_text(str(rename_relations(probe, names)), str(rename_relations(stored, {ROW: target_stream})))
        for probe, stored in zip(node.step.probe_keys, node.step.index.keys, strict=True)
    )


def _match_tally(batch: Batch, tree: ProbeTree, node: ProbeNode, counts: list[StepCount]) -> Tally:
    near = sum(count.near_rows for count in counts)
    wanted = float(sum(count.wanted_rows / count.copies for count in counts))
    new = batch.written_by_store.get(tree.start, [])
    if node.member == 1:
        # Rows with a NULL in their key never probed, but they are rows that do not match.
        probed = sum(count.probe_rows / count.copies for count in counts)
        wanted *= max(sum(meta.home_rows for meta in new) / probed, 1.0)
    first_batch = min(batch.complete_from[leg.query] for leg in node.legs)
    is_up_to_now = node.step.visibility is Visibility.UP_TO_NOW
    lower_us, upper_us = _loosest_bounds(node)
    if math.isinf(lower_us) and math.isinf(upper_us):
        metas = batch.visible(node.step.target, is_up_to_now=is_up_to_now)
        return Tally(near, wanted * sum(meta.home_rows for meta in metas if meta.lower_batch >= first_batch))
    stored = batch.spread(node.step.target, is_up_to_now=is_up_to_now, first_batch=first_batch)
    new_spread = batch.written_spread_by_store.get(tree.start)
    visible = visible_rows(new_spread, stored, lower_us, upper_us) if new_spread else 0.0
    return Tally(near, wanted * visible, EVEN_TIMES_ERROR)


def _loosest_bounds(node: ProbeNode) -> tuple[float, float]:
    """Stored time minus probing time over all legs; the members of a partial result count as equally old."""
    lower_us, upper_us = math.inf, -math.inf
    for leg in node.legs:
        uppers = [bound.upper_us for bound in leg.bounds if bound.later == node.member]
        lowers = [-bound.upper_us for bound in leg.bounds if bound.later != node.member]
        lower_us = min(lower_us, max(lowers, default=-math.inf))
        upper_us = max(upper_us, min(uppers, default=math.inf))
    return lower_us, upper_us


def visible_rows(new: TimeSpread, stored: TimeSpread, lower_us: float, upper_us: float) -> float:
    """How many stored rows a row of the new buckets has within the bounds, on average."""
    if not len(new.rows) or not len(stored.rows):
        return 0.0
    points = new.points[:, None]
    overlaps = np.minimum(stored.ends, points + (upper_us + 1)) - np.maximum(stored.begins, points + lower_us)
    return float(new.weights @ (np.maximum(overlaps, 0) @ stored.rows_per_us))


def _keys_seen(report: TaskReport) -> dict[IndexName, KeysSeen]:
    seen: dict[IndexName, KeysSeen] = {}
    for count in report.keys:
        name = (count.store, count.index)
        keys = KeysSeen(
            count.rows,
            tuple(count.rows_by_group),
            dict(zip(count.heavy_codes, count.heavy_rows, strict=True)),
            KeySketch(tuple(count.smallest_codes)),
        )
        seen[name] = seen[name] + keys if name in seen else keys
    return seen


def _rows_sampled(batch: Batch) -> dict[str, RowsSampled]:
    """By store; each task's rows in proportion to those that came to it."""
    pieces_by_store: dict[str, list[QuerySets]] = {}
    for piece in batch.report.query_sets:
        pieces_by_store.setdefault(piece.store, []).append(piece)
    sampled = {}
    for store in batch.plan.stores:
        pieces = pieces_by_store.get(store.id)
        if pieces:
            failed = {place for piece in pieces for place in piece.failed_places}
            texts = [str(each) for place, each in enumerate(store.tested_selections) if place not in failed]
            came = sum(piece.rows for piece in pieces)
            ends = [rows * SAMPLED_ROWS_A_BATCH // came for rows in accumulate((p.rows for p in pieces), initial=0)]
            parts = [end - begin for begin, end in pairwise(ends)]
            chosen = [_piece_bits(piece, failed, part) for piece, part in zip(pieces, parts, strict=True)]
            bits = np.concatenate(chosen, axis=1)
            columns = np.packbits(bits, axis=1, bitorder="little")
            passed = {
                text: int.from_bytes(column.tobytes(), "little") for text, column in zip(texts, columns, strict=True)
            }
            sampled[store.id] = RowsSampled(bits.shape[1], passed)
    return sampled


def _piece_bits(piece: QuerySets, failed: set[int], part: int) -> Mask:
    """At most `part` of its rows, without selections that failed in any task."""
    bits = unpack_sample(bytes.fromhex(piece.bits), piece.sampled_rows)
    if failed:
        tested = [place for place in range(len(bits) + len(piece.failed_places)) if place not in piece.failed_places]
        bits = bits[[row for row, place in enumerate(tested) if place not in failed]]
    return bits.take(spread_rows(piece.sampled_rows, part), axis=1)
