"""How the work at an index spreads over keys: rows that probe it plus pairs they find, for a batch (A7).

Frequent codes are known one by one, the others by key group. A code has as many pairs as its stored times its probing
rows, so a key with a tenth of the rows on both sides may well make nine tenths of the pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.plan.placement import Placement
from dovetail.plan.probe_tree import ProbeNode
from dovetail.plan.routing import Routing
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.observed import IndexName

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CodeWork:
    """Of one frequent code: its work in a batch, its rows among those stored and those that probe in a batch."""

    work: float
    stored_rows: float
    probing_rows: float


@dataclass(frozen=True)
class IndexWork:
    """`by_group` is the work of all codes that are not in `by_code`, by group of the histogram."""

    by_group: F64
    by_code: Mapping[int, CodeWork]

    @property
    def total(self) -> float:
        return float(self.by_group.sum()) + sum(each.work for each in self.by_code.values())

    def imbalance(self, routing: Routing, placement: Placement) -> float:
        """The slowest partition's work over the mean."""
        count = placement.partition_count
        members = [routing.members_with(partition, count) for partition in range(count)]
        load = np.full(count, sum(self.by_code[code].work for code in self._split(routing)) / count)
        owners = np.array(placement.partition_by_group)
        for owner, work in enumerate(np.bincount(owners, self.by_key_group(routing, len(owners)), count)):
            load[list(members[owner])] += work / len(members[owner])
        return float(load.max() / load.mean()) if load.any() else 1.0

    def by_key_group(self, routing: Routing, group_count: int) -> F64:
        """The work that lies where its key group does, not that of split codes."""
        found = np.repeat(self.by_group, group_count // len(self.by_group)) * len(self.by_group) / group_count
        for code in self.by_code.keys() - self._split(routing):
            found[_group_of(code, group_count)] += self.by_code[code].work
        return found

    def _split(self, routing: Routing) -> set[int]:
        return self.by_code.keys() & routing.split_codes


@dataclass(frozen=True)
class _Probing:
    """Rows and pairs of a batch by one side; `index` of None if nothing is known of its keys."""

    index: IndexName | None
    rows: float
    pairs: float


def work_by_index(plan: SharedPlan, stats: StatsCatalog, *, min_rows: float) -> dict[IndexName, IndexWork]:
    """Of the keyed indexes that at least `min_rows` a batch probe, and whose keys are known.

    None if no stream brings that many: whoever looks at every step of hundreds of queries should have a reason.
    """
    if max((sum(keys.rows_by_group) for keys in stats.observed.keys.values()), default=0.0) < min_rows:
        return {}
    sides: dict[IndexName, dict[IndexName | None, _Probing]] = {}
    for tree in plan.trees:
        for node in tree.children:
            side = _side(node, (tree.start,))
            rows = sum(stats.rows_by_group(*side)) if side else 0.0
            _collect(node, (tree.start,), rows, stats, sides)
    return {
        target: _index_work(target, tuple(by_side.values()), stats)
        for target, by_side in sides.items()
        if sum(each.rows for each in by_side.values()) >= min_rows and stats.rows_by_group(*target)
    }


def _collect(
    node: ProbeNode,
    stores: tuple[str, ...],
    rows: float,
    stats: StatsCatalog,
    sides: dict[IndexName, dict[IndexName | None, _Probing]],
) -> None:
    """Add what probes at the node and after it; `rows` a batch come to the node."""
    found = stats.step(node.id)
    pairs = rows * (1.0 if found is None else found.value) if node.builds_rows else 0.0
    if node.step.index.keys:
        side = _side(node, stores)
        by_side = sides.setdefault((node.step.target, node.step.index.id), {})
        known = by_side.get(side, _Probing(side, 0.0, 0.0))
        by_side[side] = _Probing(side, known.rows + rows, known.pairs + pairs)
    for child in node.children:
        _collect(child, (*stores, node.step.target), pairs, stats, sides)


def _side(node: ProbeNode, stores: tuple[str, ...]) -> IndexName | None:
    """The index whose keys the node is probed with, if they are of one member."""
    if node.step.probed_by is None:
        return None
    member, index = node.step.probed_by
    return stores[member], index


@dataclass(frozen=True)
class _Keys:
    """Shares of an index's rows: by frequent code, by group without those, and what a code has that is not frequent."""

    heavy: Mapping[int, float]
    by_group: F64
    distinct: float

    @staticmethod
    def of(index: IndexName | None, stats: StatsCatalog, group_count: int) -> _Keys | None:
        rows = np.array(stats.rows_by_group(*index)) if index else np.zeros(0)
        distinct = stats.distinct(*index) if index else None
        if index is None or distinct is None or len(rows) != group_count or not rows.sum():
            return None
        by_group = rows / rows.sum()
        heavy = stats.heavy_share_by_code(*index)
        for code, share in heavy.items():
            by_group[_group_of(code, group_count)] -= share
        return _Keys(heavy, np.maximum(by_group, 0.0), max(distinct.value, 1.0))

    def share(self, code: int) -> float:
        return self.heavy.get(code, float(self.by_group.sum()) / self.distinct)


def _index_work(target: IndexName, probings: tuple[_Probing, ...], stats: StatsCatalog) -> IndexWork:
    group_count = len(stats.rows_by_group(*target))
    stored = _Keys.of(target, stats, group_count)
    stored_rows = stats.stored_rows(target[0])
    by_group = np.zeros(group_count)
    by_code: dict[int, CodeWork] = {}
    for each in probings:
        own = _Keys.of(each.index, stats, group_count)
        if stored is None:
            continue
        # Keys of which nothing is known are taken for as many as those stored, and equally frequent.
        own = own or _Keys({}, np.full(group_count, 1 / group_count), stored.distinct)
        codes = sorted({*stored.heavy, *own.heavy})
        match_by_code = {code: stored.share(code) * own.share(code) for code in codes}
        match_by_group = stored.by_group * own.by_group
        rest = float(stored.by_group.sum() * own.by_group.sum()) / max(stored.distinct, own.distinct)
        pairs_a_match = each.pairs / ((sum(match_by_code.values()) + rest) or 1.0)
        by_group += each.rows * own.by_group + pairs_a_match * rest * match_by_group / (match_by_group.sum() or 1.0)
        for code in codes:
            rows = each.rows * own.share(code)
            known = by_code.get(code, CodeWork(0.0, 0.0, 0.0))
            by_code[code] = CodeWork(
                known.work + rows + pairs_a_match * match_by_code[code],
                stored.share(code) * (stored_rows.value if stored_rows else 0.0),
                known.probing_rows + rows,
            )
    return IndexWork(by_group, by_code)


def _group_of(code: int, group_count: int) -> int:
    """The top bits of a code; there are a power of two of groups."""
    return code >> (65 - group_count.bit_length())
