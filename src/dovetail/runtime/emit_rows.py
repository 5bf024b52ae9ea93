"""Queries over one stream: a new row that their selection wants needs no partner."""

from __future__ import annotations

import numpy as np

from dovetail.kernels.gather_rows import make_refs
from dovetail.kernels.match.leg_bits import bits_of_rows, rows_of_legs
from dovetail.plan.probe_tree import ProbeTree
from dovetail.plan.query_limits import Found
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.probe.frame import Frame
from dovetail.runtime.probe.probe_operator import ProbeOperator, TakeRows
from dovetail.runtime.probe.snapshot import StoreSnapshot
from dovetail.runtime.report import TaskReport
from dovetail.runtime.source.store_operator import keeper_of


def emit_rows(
    task: BatchTask,
    tree: ProbeTree,
    snapshot: StoreSnapshot,
    partition: int,
    probe: ProbeOperator,
    report: TaskReport,
    take: TakeRows,
) -> None:
    """The partition's part of the batch's rows: those that are at home in it.

    Where rows are not shipped nothing says where they belong, so they are dealt out evenly.
    """
    emit_by_leg = {(emit.query, emit.start): emit for emit in tree.emits}
    legs = tuple(leg for leg in tree.legs if (leg.query, leg.start) in emit_by_leg)
    if not legs:
        return
    partitions = task.plan.placement.partition_count
    all_places = probe.selection_bits(tree.start, legs).place
    for ordinal in range(snapshot.current_from, len(snapshot.metas)):
        meta = snapshot.metas[ordinal]
        if task.plan.ships(snapshot.store):
            rows = np.arange(meta.home_rows if keeper_of(meta) == partition else 0)
        else:
            rows = np.arange(meta.rows * partition // partitions, meta.rows * (partition + 1) // partitions)
        words = [word[rows] for word in snapshot.words(ordinal)]
        bits = bits_of_rows(all_places[:, ordinal].tolist(), words.__getitem__, len(rows))
        refs = make_refs(ordinal, rows)
        for leg, idx in zip(legs, rows_of_legs(bits, len(legs)), strict=True):
            emit = emit_by_leg[leg.query, leg.start]
            if leg.query in report.void_queries or len(idx) == 0:
                continue
            if emit.into or report.count(leg.query, Found(results=len(idx)), task.limits):
                take(emit, Frame((tree.start,), (refs[idx],)))
