"""Partial results as references: one column of references per member, values fetched only when asked (A2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.match_keys import NULL_TIME
from dovetail.kernels.select_rows import Mask
from dovetail.plan.probe_tree import MemberBound
from dovetail.query.expression import Column
from dovetail.runtime.snapshot import StoreSnapshot

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Frame:
    """`refs[k][i]` is member k of partial result i, a row of store `stores[k]`."""

    stores: tuple[str, ...]
    refs: tuple[U64, ...]

    def __len__(self) -> int:
        return len(self.refs[0])

    def take(self, idx: I64) -> Frame:
        return Frame(self.stores, tuple(refs[idx] for refs in self.refs))

    def joined(self, store: str, refs: U64) -> Frame:
        return Frame((*self.stores, store), (*self.refs, refs))


class FrameValues:
    """Columns and times of a frame's members, each gathered at most once."""

    def __init__(self, frame: Frame, snapshots: Mapping[str, StoreSnapshot]) -> None:
        self.frame = frame
        self._snapshots = snapshots
        self._column_by_name: dict[tuple[int, str], pa.Array] = {}
        self._times_by_member: dict[int, I64] = {}

    def __len__(self) -> int:
        return len(self.frame)

    def snapshot(self, member: int) -> StoreSnapshot:
        return self._snapshots[self.frame.stores[member]]

    def column(self, column: Column) -> pa.Array:
        """`column.relation` is a member's name, m0 or m1 ..."""
        key = (int(column.relation[1:]), column.name)
        if key not in self._column_by_name:
            member = key[0]
            self._column_by_name[key] = self.snapshot(member).column(column.name, self.frame.refs[member])
        return self._column_by_name[key]

    def times(self, member: int) -> I64:
        if member not in self._times_by_member:
            self._times_by_member[member] = self.snapshot(member).times(self.frame.refs[member])
        return self._times_by_member[member]

    def within(self, bound: MemberBound) -> Mask:
        """Where the bound holds; a NULL time satisfies none."""
        earlier, later = self.times(bound.earlier), self.times(bound.later)
        mask: Mask = (later - earlier <= bound.upper_us) & (later != NULL_TIME) & (earlier != NULL_TIME)
        return mask

    def take(self, idx: I64) -> FrameValues:
        return FrameValues(self.frame.take(idx), self._snapshots)
