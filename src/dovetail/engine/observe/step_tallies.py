"""Of steps: how many rows a probe finds, and the chance that two rows meet.

That chance needs both what was found and what could have been: pairs of equal key, over probing rows times the stored
rows that time bounds let each of them see. The latter is computed here from the buckets' time ranges, as if times lay
evenly within a bucket; so the figure counts as estimated where a step has bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.engine.observe.time_spread import EVEN_TIMES_ERROR, visible_rows
from dovetail.engine.once_per import OncePer
from dovetail.plan.probe_tree import ProbeNode, member_name
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import ROW
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import rename_relations
from dovetail.runtime.report import StepCount
from dovetail.stats.catalog import edge_text, joint_edge_text
from dovetail.stats.figure import Figure, Kind, Tally


@dataclass(frozen=True)
class _Step:
    """What the plan says of a node. `stores` are those of the members that probe there, and the one they probe.

    `lower_us` and `upper_us` are the loosest bounds of stored time minus probing time over all legs, `first_batch` is
    the oldest that one of them sees. `match` is None where ranges narrow the search: there nobody knows how many pairs
    have equal keys.
    """

    node: ProbeNode
    start: str
    stores: frozenset[str]
    figure: Figure
    match: Figure | None
    lower_us: float
    upper_us: float
    first_batch: int


def step_tallies(batch: FinishedBatch) -> Iterator[tuple[Figure, Tally]]:
    counts_by_node: dict[str, list[StepCount]] = {}
    for count in batch.report.steps:
        counts_by_node.setdefault(count.node, []).append(count)
    of_streams = {store.id for store in batch.of_streams()}
    visible = _VisibleRows(batch)
    # In the order of the plan: what is added up shall not depend on which task reported first.
    for step in _steps.of(batch.plan):
        counts = counts_by_node.get(step.node.id)
        if counts is None:
            continue
        matched, probed = sum(c.matched_rows for c in counts), sum(c.probe_rows / c.copies for c in counts)
        yield step.figure, Tally(matched, probed)
        if step.match is not None and step.stores <= of_streams:
            yield step.match, _match_tally(batch, step, counts, visible)


def _steps_of(plan: SharedPlan) -> list[_Step]:
    """Those that answer pairs."""
    stream_by_store = {store.id: store.stream for store in plan.stores}
    complete_from = dict(plan.complete_from_by_query)
    found = []
    for tree in plan.trees:
        for node, path in _nodes(tree.children, (tree.start,)):
            target, index = node.step.target, node.step.index
            match = None
            if index.keys and index.order is None:
                kind = Kind.MATCH if node.member == 1 else Kind.MATCH_AFTER_JOIN
                edge = edge_of_step(node, [stream_by_store[store] for store in path], stream_by_store[target])
                match = Figure(kind, (edge,))
            step = Figure(Kind.STEP, (node.id,))
            first_batch = min(complete_from[leg.query] for leg in node.legs)
            stores = frozenset((*path, target))
            found.append(_Step(node, tree.start, stores, step, match, *_loosest_bounds(node), first_batch))
    return found


_steps = OncePer(_steps_of)


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


def _match_tally(batch: FinishedBatch, step: _Step, counts: list[StepCount], visible: _VisibleRows) -> Tally:
    near = sum(count.near_rows for count in counts)
    wanted = float(sum(count.wanted_rows / count.copies for count in counts))
    if step.node.member == 1:
        # Rows with a NULL in their key never probed, but they are rows that do not match.
        probed = sum(count.probe_rows / count.copies for count in counts)
        new = batch.written_by_store.get(step.start, [])
        wanted *= max(sum(meta.home_rows for meta in new) / probed, 1.0)
    return Tally(near, wanted * visible.of(step), EVEN_TIMES_ERROR if _is_bounded(step) else 0.0)


def _is_bounded(step: _Step) -> bool:
    return not (math.isinf(step.lower_us) and math.isinf(step.upper_us))


class _VisibleRows:
    """How many stored rows a probing row sees, on average: worked out once for all steps that see the same."""

    def __init__(self, batch: FinishedBatch) -> None:
        self._batch = batch
        self._known: dict[tuple[object, ...], float] = {}

    def of(self, step: _Step) -> float:
        is_up_to_now = step.node.step.visibility is Visibility.UP_TO_NOW
        key = (step.start, step.node.step.target, is_up_to_now, step.first_batch, step.lower_us, step.upper_us)
        if key not in self._known:
            self._known[key] = self._count(step, is_up_to_now=is_up_to_now)
        return self._known[key]

    def _count(self, step: _Step, *, is_up_to_now: bool) -> float:
        target, batch = step.node.step.target, self._batch
        if not _is_bounded(step):
            metas = batch.visible(target, is_up_to_now=is_up_to_now)
            return float(sum(meta.home_rows for meta in metas if meta.lower_batch >= step.first_batch))
        stored = batch.spread(target, is_up_to_now=is_up_to_now, first_batch=step.first_batch)
        new = batch.written_spread_by_store.get(step.start)
        return visible_rows(new, stored, step.lower_us, step.upper_us) if new else 0.0


def _loosest_bounds(node: ProbeNode) -> tuple[float, float]:
    """Stored time minus probing time over all legs; the members of a partial result count as equally old."""
    lower_us, upper_us = math.inf, -math.inf
    for leg in node.legs:
        uppers = [bound.upper_us for bound in leg.bounds if bound.later == node.member]
        lowers = [-bound.upper_us for bound in leg.bounds if bound.later != node.member]
        lower_us = min(lower_us, max(lowers, default=-math.inf))
        upper_us = max(upper_us, min(uppers, default=math.inf))
    return lower_us, upper_us
