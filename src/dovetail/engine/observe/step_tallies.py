"""Of steps: how many rows a probe finds, and the chance that two rows meet.

That chance needs both what was found and what could have been: pairs of equal key, over probing rows times the stored
rows that time bounds let each of them see. The latter is computed here from the buckets' time ranges, as if times lay
evenly within a bucket; so the figure counts as estimated where a step has bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.engine.observe.time_spread import EVEN_TIMES_ERROR, visible_rows
from dovetail.plan.probe_tree import ProbeNode, ProbeTree, member_name
from dovetail.plan.store_plan import ROW
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import rename_relations
from dovetail.runtime.report import StepCount
from dovetail.stats.catalog import edge_text, joint_edge_text
from dovetail.stats.figure import Figure, Kind, Tally


def step_tallies(batch: FinishedBatch) -> Iterator[tuple[Figure, Tally]]:
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


def _match_tally(batch: FinishedBatch, tree: ProbeTree, node: ProbeNode, counts: list[StepCount]) -> Tally:
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
