"""Partial results as references: one column of references per member, values fetched only when asked (A2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import ColumnTooLarge
from dovetail.kernels.evaluate.sizes import WORK_BYTES
from dovetail.plan.probe_tree import member_number
from dovetail.query.expression import Column
from dovetail.runtime.probe.snapshot import StoreSnapshot

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


def concat_frames(frames: Sequence[Frame]) -> Frame:
    if len(frames) == 1:
        return frames[0]
    members = range(len(frames[0].stores))
    return Frame(frames[0].stores, tuple(np.concatenate([frame.refs[k] for frame in frames]) for k in members))


def slice_of(frame: Frame, lower: int, rows: int) -> Frame:
    if lower == 0 and len(frame) <= rows:
        return frame
    return Frame(frame.stores, tuple(refs[lower : lower + rows] for refs in frame.refs))


def smaller_frames(frame: Frame, error: ColumnTooLarge) -> Iterator[Frame]:
    """The frame in parts whose values should be small enough; one row that is too large stays an error."""
    if len(frame) == 1:
        raise error
    rows = -(-len(frame) // max(2 * error.needed_bytes // WORK_BYTES, 2))
    return (slice_of(frame, lower, rows) for lower in range(0, len(frame), rows))


class FrameValues:
    """Columns and times of a frame's members, each gathered at most once."""

    def __init__(self, frame: Frame, snapshots: Mapping[str, StoreSnapshot]) -> None:
        self.frame = frame
        self._snapshots = snapshots
        self._column_by_name: dict[tuple[int, str], pa.Array] = {}

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, idx: I64) -> FrameValues:
        return FrameValues(self.frame.take(idx), self._snapshots)

    def column(self, column: Column) -> pa.Array:
        """`column.relation` is a member's name, m0 or m1 ..."""
        key = (member_number(column.relation), column.name)
        if key not in self._column_by_name:
            self._column_by_name[key] = self._snapshot(key[0]).column(column, self.frame.refs[key[0]])
        return self._column_by_name[key]

    def times(self, member: int) -> I64:
        return self._snapshot(member).times(self.frame.refs[member])

    def _snapshot(self, member: int) -> StoreSnapshot:
        return self._snapshots[self.frame.stores[member]]
